/**
 * How a file is written whole: a temporary sibling, fsync, rename, fsync of the folder. Whoever reads sees the old bytes
 * or the new ones, also after a power cut, and a write that failed leaves the old ones and no litter.
 *
 * Owns the file modes of everything that the agent writes. Never decides where a file stands or what is in it, and takes
 * no lock: two writers of one path are each whole, and the later one stays.
 *
 * `AtomicFiles` does it on any file system, for the rooms that a simulation runs; the functions are this machine's.
 */
import { basename, dirname, join } from 'node:path';
import { causesOf, errorLine, retryable, systemCode } from '@eitri/core/kit';
import { DiskFiles, type FileSystem } from './file-system.js';

export type { FolderEntry } from './file-system.js';

/** The `AtomicFiles` that a room keeps its state with. */
export const ATOMIC_FILES = Symbol.for('eitri.atomic-files@1');

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

/** Files and folders that are written whole, on one file system. */
export class AtomicFiles {
  constructor(readonly system: FileSystem) {}

  /**
   * Replaces `path` with `data`. Resolved means: on disk. The mode is the file's whatever the umask. The folder must be
   * there.
   */
  readonly write = async (path: string, data: string | Uint8Array, mode: number = PRIVATE_FILE_MODE): Promise<void> => {
    const folder = dirname(path);
    const temp = join(folder, `.${basename(path)}.${this.system.uniqueName()}.tmp`);
    try {
      const file = await this.system.create(temp, mode);
      try {
        await file.chmod(mode);
        await file.write(data);
        await file.sync();
      } finally {
        await file.close();
      }
      await this.system.rename(temp, path);
    } catch (cause) {
      // Best effort: what can't be removed now is swept at the next start (isTempName).
      await this.system.remove(temp).catch(() => undefined);
      throw retryable(`write ${path}`, { cause });
    }
    await this.syncFolder(folder);
  };

  /** Makes renames and removals inside a folder durable. */
  readonly syncFolder = async (folder: string): Promise<void> => {
    try {
      await this.system.syncFolder(folder);
    } catch (cause) {
      // Some file systems can't sync a folder and say so; the rename stands, only its durability is theirs to promise.
      if (['EINVAL', 'ENOTSUP'].includes(systemCode(cause) ?? '')) return;
      throw retryable(`make changes in ${folder} durable`, { cause });
    }
  };

  /** The text of a file; undefined where there is none. A longer one than `maxBytes` is an error, never a part of it. */
  readonly readIfThere = async (path: string, maxBytes?: number): Promise<string | undefined> =>
    (await this.readBytesIfThere(path, maxBytes))?.toString('utf8');

  /** Like `readIfThere`, undecoded. */
  readonly readBytesIfThere = async (path: string, maxBytes = 16 * 2 ** 20): Promise<Buffer | undefined> => {
    try {
      const file = await this.system.openToRead(path);
      try {
        const facts = await file.stat();
        if (facts.kind === 'folder') throw new Error('it is a folder');
        if (facts.kind !== 'file') throw new Error('it is not a regular file');
        if (facts.sizeBytes > maxBytes) throw new Error(`it has ${facts.sizeBytes} bytes, more than ${maxBytes}`);
        return await file.read();
      } finally {
        await file.close();
      }
    } catch (cause) {
      if (systemCode(cause) === 'ENOENT') return undefined;
      throw retryable(`read ${path}`, { cause });
    }
  };

  /** Makes a folder, and those above it, and gives it exactly this mode, whatever the umask. Idempotent. */
  readonly ensureFolder = async (path: string, mode: number): Promise<void> => {
    try {
      await this.makeFolders(path, mode);
      if ((await this.system.stat(path)).mode !== mode) await this.system.chmod(path, mode);
    } catch (cause) {
      throw retryable(`make the folder ${path}`, { cause });
    }
  };

  /** Like `ensureFolder`, for a folder that an operator names: one that is there keeps the mode its owner gave it. */
  readonly ensureNamedFolder = async (path: string, mode: number): Promise<void> => {
    try {
      if (await this.makeFolders(path, mode)) await this.system.chmod(path, mode);
    } catch (cause) {
      throw retryable(`make the folder ${path}`, { cause });
    }
  };

  /** Removes a file and makes that durable. Nothing there is fine. */
  readonly removeDurably = async (path: string): Promise<void> => {
    try {
      await this.system.remove(path);
    } catch (cause) {
      throw retryable(`remove ${path}`, { cause });
    }
    await this.syncFolder(dirname(path)).catch((error: unknown) => {
      if (systemCode(error) !== 'ENOENT') throw error;
    });
  };

  /**
   * Removes what writes that never ended left in a folder, and says how many. Only for who is alone in it (holds the state
   * lock): it can't tell a dead writer's file from one that is being written.
   */
  readonly sweepTemps = async (folder: string): Promise<number> => {
    let swept = 0;
    try {
      for (const { name } of await this.system.list(folder)) {
        if (!isTempName(name)) continue;
        await this.system.remove(join(folder, name));
        swept++;
      }
    } catch (cause) {
      if (systemCode(cause) === 'ENOENT') return swept;
      throw retryable(`sweep ${folder}: ${swept} removed before it failed`, { cause });
    }
    return swept;
  };

  /**
   * Whether the folder had to be made; it and those above are durable then. Level by level: Node's own recursion answers
   * ENOENT on a read-only file system, which would hide the one thing that the operator can mend.
   */
  private async makeFolders(path: string, mode: number): Promise<boolean> {
    const { system } = this;
    try {
      await system.makeFolder(path, mode);
    } catch (error) {
      const code = systemCode(error);
      if ((code === 'EEXIST' || code === 'EISDIR') && (await system.stat(path)).kind === 'folder') return false;
      if (code !== 'ENOENT' || dirname(path) === path) throw error;
      await this.makeFolders(dirname(path), mode);
      await system.makeFolder(path, mode).catch((again: unknown) => {
        // Somebody who made it at the same moment is welcome.
        if (systemCode(again) !== 'EEXIST') throw again;
      });
    }
    await system.chmod(path, mode);
    await this.syncFolder(dirname(path));
    return true;
  }
}

/** This machine's own. */
export const diskFiles = new AtomicFiles(new DiskFiles());

export const {
  write: writeAtomically,
  syncFolder,
  readIfThere,
  readBytesIfThere,
  ensureFolder,
  ensureNamedFolder,
  removeDurably,
  sweepTemps,
} = diskFiles;

/**
 * What an operator reads after a write failed: the kernel's word as a sentence, and the next step, of which `instead` is
 * the one that always helps. The kernel's own text never: it names system calls.
 */
export function writeAdvice(error: unknown, instead: string): string {
  const [why, step] = writeTrouble(error);
  return `${why}: ${step === undefined ? '' : `${step}, or `}${instead}`;
}

/** Why, and the step that mends it, where one is sure to help. */
function writeTrouble(error: unknown): readonly [why: string, step?: string] {
  const code = systemCode(error);
  switch (code) {
    case 'ENOSPC':
      return ['its file system is full', 'free some space there'];
    case 'EDQUOT':
      return ['the disk quota there is used up', 'raise it, or free some space'];
    case 'EROFS':
      return ['its file system is read-only', 'remount it writable'];
    case 'EACCES':
    case 'EPERM':
      return ['this user may not write there', 'give the folder to it, or run as its owner'];
    case 'EIO':
      return ['the disk fails', 'look at the kernel log'];
    case 'ENOTDIR':
    case 'EEXIST':
      return ['something that is no folder stands in the way', 'move it aside'];
    case 'ENOENT':
      // Every level above was made first: a file system that lets nobody make one, like /proc, says this.
      return [isOfMakingFolder(error) ? 'its file system takes no new folders' : 'its folder was removed meanwhile'];
    case 'ELOOP':
      return ['symbolic links there lead in a circle', 'mend them'];
    case 'ENAMETOOLONG':
      return ['the path is longer than its file system takes'];
    case undefined:
      return [errorLine(error)];
    default:
      return [`the system refuses it (${code})`];
  }
}

const isOfMakingFolder = (error: unknown): boolean =>
  causesOf(error).some((cause) => cause instanceof Error && 'syscall' in cause && cause.syscall === 'mkdir');
