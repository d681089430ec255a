/**
 * Runs an entry in TypeScript from the sources: node scripts/run-ts.mjs ENTRY [ARGUMENT…].
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleTo } from './lib/bundle.mjs';

const [entry, ...args] = process.argv.slice(2);
const folder = fileURLToPath(new URL(`../.cache/bundles/${randomBytes(6).toString('hex')}`, import.meta.url));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const file = await bundleTo(entry, folder);
process.argv = [process.argv[0], entry, ...args];
await import(pathToFileURL(file).href);
