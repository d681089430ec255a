/**
 * A program for tests that need an agent's part in a process of its own (to kill it): TypeScript of test/fixtures made
 * into one file that plain node runs. From the sources, so that no stale build is tested.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { bundleTo } from '../../scripts/lib/bundle.mjs';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The path of the bundle; gone after the test. It stands in the checkout, where packages are found from. */
export async function bundle(entry: string): Promise<string> {
  const folder = here(`../../.cache/bundles/${randomBytes(6).toString('hex')}`);
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return await bundleTo(here(`../fixtures/${entry}`), folder);
}
