/**
 * The log that a VMM writes for itself: opened for it, read back at its end only, and kept small.
 *
 * It stands in the folder that the VMM's own user may write, so nothing there is trusted: a link in its place would have
 * a root agent write to, or show, any file of the host, and a FIFO would hang it.
 */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { permanent, retryable, systemCode } from '@eitri/core/kit';
import { PRIVATE_FILE_MODE, writeAtomically } from './atomic-file.js';

/** How much of its end is ever looked at. */
export const VMM_LOG_TAIL_BYTES = 64 * 2 ** 10;
/** From this size on it is rotated. */
export const VMM_LOG_MAX_BYTES = 2 ** 20;

/** Opens the log to append to, made with mode 0600. The caller closes it. */
export const openVmmLog = (path: string): Promise<FileHandle> =>
  openSafely(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);

/** The end of the log in whole lines; undefined where there is no log. */
export async function readVmmLogTail(path: string, maxBytes = VMM_LOG_TAIL_BYTES): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await openSafely(path, constants.O_RDONLY);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - maxBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, maxBytes)), { position: from });
    const text = buffer.subarray(0, bytesRead).toString('utf8');
    return from === 0 ? text : text.slice(text.indexOf('\n') + 1);
  } catch (cause) {
    throw retryable(`read the end of ${path}`, { cause });
  } finally {
    await file.close();
  }
}

/**
 * Where the log is longer than `maxBytes`: keeps its end as `<path>.1`, and empties it in place. In place, because a
 * running VMM holds the file open; it appends, so it goes on at the new beginning. What it writes between the two steps
 * is lost. Says whether it did.
 */
export async function rotateVmmLog(path: string, maxBytes = VMM_LOG_MAX_BYTES): Promise<boolean> {
  let file: FileHandle;
  try {
    file = await openSafely(path, constants.O_RDWR);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
  try {
    if ((await file.stat()).size <= maxBytes) return false;
    await writeAtomically(`${path}.1`, (await readVmmLogTail(path, maxBytes)) ?? '');
    await file.truncate(0);
    return true;
  } catch (cause) {
    throw retryable(`rotate ${path}`, { cause });
  } finally {
    await file.close();
  }
}

async function openSafely(path: string, flags: number): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, PRIVATE_FILE_MODE);
  } catch (cause) {
    if (systemCode(cause) === 'ELOOP') throw permanent(`open ${path}: a link stands there: remove it`, { cause });
    throw retryable(`open ${path}`, { cause });
  }
  const facts = await file.stat();
  // A second name of another user's file, put here, would be written through just as a link would.
  if (facts.isFile() && facts.nlink === 1) return file;
  await file.close();
  throw permanent(`open ${path}: it is not a plain file of its own: remove it`);
}
