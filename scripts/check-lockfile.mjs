// A lockfile that names a registry sends everybody's `npm ci` there, reachable or not; .npmrc keeps names out, this holds it.
// With --installed: whether node_modules is what the lockfile says, however it got there.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const read = (path) => JSON.parse(readFileSync(at(path), 'utf8')).packages;
const locked = read('package-lock.json');

if (process.argv.includes('--installed')) {
  if (!existsSync(at('node_modules/.package-lock.json'))) process.exit(1);
  const installed = read('node_modules/.package-lock.json');
  const missing = Object.entries(locked).filter(([path, entry]) => {
    if (!path.startsWith('node_modules/') && !path.includes('/node_modules/')) return false;
    if (entry.link) return !existsSync(at(path));
    return !entry.optional && installed[path]?.version !== entry.version;
  });
  process.exit(missing.length === 0 ? 0 : 1);
}

const named = Object.entries(locked).filter(([, entry]) => /^[a-z+]+:\/\//.test(entry.resolved ?? ''));
for (const [path, entry] of named) console.error(`package-lock.json: ${path} names a host: ${entry.resolved}`);
if (named.length > 0) process.exit(1);
