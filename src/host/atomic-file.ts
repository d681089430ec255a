/**
 * How a file is written whole: a temporary sibling, fsync, rename, fsync of the folder. Whoever reads sees the old bytes
 * or the new ones, also after a power cut, and a write that failed leaves the old ones and no litter.
 *
 * Owns the file modes of everything that the agent writes. Never decides where a file stands or what is in it, and takes
 * no lock: two writers of one path are each whole, and the later one stays.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { retryable, systemCode } from '@eitri/core/kit';

/** For the agent alone. */
export const PRIVATE_FILE_MODE = 0o600;
/** Also for tools of ours that run as another user (dnsmasq's hosts file). */
export const PUBLIC_FILE_MODE = 0o644;
/** For the agent alone. */
export const PRIVATE_FOLDER_MODE = 0o700;
/** Others pass through to what is theirs below it, and list nothing. */
export const PASSAGE_FOLDER_MODE = 0o711;

const TEMP_NAME = /^\..+\.[0-9a-f]{12}\.tmp$/;

/** Whether a file of this name is the temporary sibling of a write, left behind by an agent that died in it. */
export const isTempName = (name: string): boolean => TEMP_NAME.test(name);

/**
 * Replaces `path` with `data`. Resolved means: on disk. The mode is the file's whatever the umask. The folder must be
 * there.
 */
export async function writeAtomically(
  path: string,
  data: string | Uint8Array,
  mode: number = PRIVATE_FILE_MODE,
): Promise<void> {
  const folder = dirname(path);
  const temp = join(folder, `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = await open(temp, 'wx', mode);
    try {
      await file.chmod(mode);
      await file.writeFile(data);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temp, path);
  } catch (cause) {
    // Best effort: what can't be removed now is swept at the next start (isTempName).
    await rm(temp, { force: true }).catch(() => undefined);
    throw retryable(`write ${path}`, { cause });
  }
  await syncFolder(folder);
}

/** Makes renames and removals inside a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    // Some file systems can't sync a folder and say so; the rename stands, only its durability is theirs to promise.
    if (['EINVAL', 'ENOTSUP'].includes(systemCode(cause) ?? '')) return;
    throw retryable(`make changes in ${folder} durable`, { cause });
  }
}

/** The text of a file; undefined where there is none. A longer one than `maxBytes` is an error, never a part of it. */
export async function readIfThere(path: string, maxBytes = 16 * 2 ** 20): Promise<string | undefined> {
  return (await readBytesIfThere(path, maxBytes))?.toString('utf8');
}

/** Like `readIfThere`, undecoded. */
export async function readBytesIfThere(path: string, maxBytes = 16 * 2 ** 20): Promise<Buffer | undefined> {
  try {
    // Not blocking: somebody's FIFO in the file's place must not hang the agent.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const facts = await file.stat();
      if (facts.isDirectory()) throw new Error('it is a folder');
      if (!facts.isFile()) throw new Error('it is not a regular file');
      if (facts.size > maxBytes) throw new Error(`it has ${facts.size} bytes, more than ${maxBytes}`);
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw retryable(`read ${path}`, { cause });
  }
}

/** Makes a folder, and those above it, and gives it exactly this mode, whatever the umask. Idempotent. */
export async function ensureFolder(path: string, mode: number): Promise<void> {
  try {
    await makeFolders(path, mode);
    if (((await stat(path)).mode & 0o7777) !== mode) await chmod(path, mode);
  } catch (cause) {
    throw retryable(`make the folder ${path}`, { cause });
  }
}

/** Like `ensureFolder`, for a folder that an operator names: one that is there keeps the mode its owner gave it. */
export async function ensureNamedFolder(path: string, mode: number): Promise<void> {
  try {
    if (await makeFolders(path, mode)) await chmod(path, mode);
  } catch (cause) {
    throw retryable(`make the folder ${path}`, { cause });
  }
}

/**
 * Whether the folder had to be made; it and those above are durable then. Level by level: Node's own recursion answers
 * ENOENT on a read-only file system, which would hide the one thing that the operator can mend.
 */
async function makeFolders(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const code = systemCode(error);
    if ((code === 'EEXIST' || code === 'EISDIR') && (await stat(path)).isDirectory()) return false;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolders(dirname(path), mode);
    await mkdir(path, { mode }).catch((again: unknown) => {
      // Somebody who made it at the same moment is welcome.
      if (systemCode(again) !== 'EEXIST') throw again;
    });
  }
  await chmod(path, mode);
  await syncFolder(dirname(path));
  return true;
}

/** Removes a file and makes that durable. Nothing there is fine. */
export async function removeDurably(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
  } catch (cause) {
    throw retryable(`remove ${path}`, { cause });
  }
  await syncFolder(dirname(path)).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw error;
  });
}

/**
 * Removes what writes that never ended left in a folder, and says how many. Only for who is alone in it (holds the state
 * lock): it can't tell a dead writer's file from one that is being written.
 */
export async function sweepTemps(folder: string): Promise<number> {
  let swept = 0;
  try {
    for (const name of await readdir(folder)) {
      if (!isTempName(name)) continue;
      await rm(join(folder, name), { force: true });
      swept++;
    }
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return swept;
    throw retryable(`sweep ${folder}: ${swept} removed before it failed`, { cause });
  }
  return swept;
}

/** The operator's next step after a write failed, by the kernel's word; undefined where none is sure to help. */
export function writeRemedy(error: unknown): string | undefined {
  switch (systemCode(error)) {
    case 'ENOSPC':
      return 'its file system is full: free some space there';
    case 'EDQUOT':
      return 'the disk quota there is used up: raise it, or free some space';
    case 'EROFS':
      return 'its file system is read-only: remount it writable';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not write there: give the folder to it, or run as its owner';
    case 'EIO':
      return 'the disk fails: look at the kernel log';
    case 'ENOTDIR':
    case 'EEXIST':
      return 'something that is no folder stands in the way: move it aside';
    default:
      return undefined;
  }
}
