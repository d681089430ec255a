/**
 * A program for tests that need an agent's part in a process of its own (to kill it): TypeScript of test/fixtures made
 * into one file that plain node runs. From the sources, so that no stale build is tested.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { onTestFinished } from 'vitest';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The path of the bundle; gone after the test. It stands in the checkout, where packages are found from. */
export async function bundle(entry: string): Promise<string> {
  const folder = here(`../../.cache/bundles/${randomBytes(6).toString('hex')}`);
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  await build({
    configFile: false,
    logLevel: 'error',
    resolve: {
      alias: [
        { find: /^@eitri\/core\/(contracts|kit|reconcile)$/, replacement: here('../../src/core/$1/index.ts') },
        { find: /^@eitri\/(protocol|conformance)$/, replacement: here('../../src/$1/index.ts') },
      ],
    },
    oxc: { decorator: { legacy: true, emitDecoratorMetadata: false } },
    build: { ssr: here(`../fixtures/${entry}`), outDir: folder, target: 'node20', minify: false },
  });
  return join(folder, `${entry.replace(/^.*\//, '').replace(/\.ts$/, '')}.js`);
}
