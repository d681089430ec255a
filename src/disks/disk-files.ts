/**
 * The file operations under disks: sizes, growth, clones. Everything sparse, everything on disk when it resolves.
 *
 * Owns no layout and takes no lock; who calls has made sure that no VMM has the file open.
 */
import { constants } from 'node:fs';
import { chmod, copyFile, lstat, open, rm } from 'node:fs/promises';
import type { HostFacts, Runner } from '@eitri/core/contracts';
import { permanent, systemCode } from '@eitri/core/kit';
import { PRIVATE_FILE_MODE } from '../host/atomic-file.js';

/** A plain copy of a large image on a slow disk; the watchdog of the VM's pass ends it sooner. */
const COPY_LIMIT_MS = 60 * 60_000;

/** What a file system says to a clone that it can't make, and nothing else. */
const NO_REFLINK = new Set(['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS']);

/** Size of a disk; undefined where nothing stands. Anything but a regular file is refused: it is not one of ours. */
export async function diskSize(path: string): Promise<number | undefined> {
  try {
    const stats = await lstat(path);
    if (!stats.isFile()) throw permanent(`${path} is no regular file, so it is not used as a disk: move it away`);
    return stats.size;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Sets a size that is not below the present one, and syncs: what is added reads as zeros and takes no room. */
export async function setSize(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    await file.truncate(sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes an empty disk of a size. Fails where something stands. */
export async function createSparse(path: string, sizeBytes: number): Promise<void> {
  const file = await open(path, 'wx', PRIVATE_FILE_MODE);
  try {
    await file.truncate(sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Clones a file at once, sharing its blocks, or fails. */
export type Reflink = (from: string, to: string) => Promise<void>;

/** `COPYFILE_FICLONE` without force would quietly make a dense copy of full size where there is no reflink. */
export const forcedReflink: Reflink = async (from, to) => {
  await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
};

/**
 * Copies a disk: a reflink where the file system can, else a sparse copy.
 */
export async function cloneFile(
  from: string,
  to: string,
  tools: { readonly runner: Runner; readonly facts: HostFacts; readonly reflink: Reflink },
  signal: AbortSignal,
): Promise<void> {
  try {
    await tools.reflink(from, to);
  } catch (error) {
    if (!NO_REFLINK.has(systemCode(error) ?? '')) throw error;
    await rm(to, { force: true });
    await tools.runner.run({ command: 'cp', args: copyArgs(tools.facts, from, to), timeoutMs: COPY_LIMIT_MS }, signal);
  }
  // The image is read-only, and a copy takes over its mode.
  await chmod(to, PRIVATE_FILE_MODE);
}

/** `always`: an image that was stored dense gets its holes back. The forced clone failed, so macOS has only the plain copy. */
export function copyArgs(facts: HostFacts, from: string, to: string): readonly string[] {
  return facts.os === 'darwin' ? [from, to] : ['--reflink=auto', '--sparse=always', '--', from, to];
}
