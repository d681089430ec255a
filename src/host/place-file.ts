/**
 * How a file that some tool made beside its place gets there: fsync, rename, fsync of the folder. The sibling of
 * `writeAtomically`, for what is too large to be written from memory.
 *
 * Both paths stand in one folder. The maker removes its partial file when something fails before this.
 */
import { constants } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from './atomic-file.js';

/** Resolved means: `path` holds what `partial` held, whole, also after a power cut. */
export async function placeFile(partial: string, path: string): Promise<void> {
  const file = await open(partial, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
  await syncFolder(dirname(path));
}
