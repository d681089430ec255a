/**
 * Finds the tiny guest: in the folder that EITRI_TEST_GUEST names, else in the cache that scripts/guest/build-tiny fills.
 */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CACHE = fileURLToPath(new URL('../../.cache/guest', import.meta.url));

/** Path of the raw image. */
export async function tinyGuest(): Promise<string> {
  const path = join(process.env['EITRI_TEST_GUEST'] ?? CACHE, 'tiny.raw');
  try {
    await access(path);
  } catch (cause) {
    throw new Error(`there is no tiny guest at ${path}: build it with scripts/guest/build-tiny`, { cause });
  }
  return path;
}
