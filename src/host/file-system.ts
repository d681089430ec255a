/**
 * What the agent asks of a file system when it keeps something: one call a system call, as far as a crash or a power cut
 * can fall between two of them. `DiskFiles` is the machine's own; a simulation puts its own in its place.
 *
 * Call order: none but an open file's own. Every call may reject with an error that has the kernel's code (`ENOENT`,
 * `ENOSPC`), as Node's do; nothing is retried here. Never knows what a file is for.
 */
import { randomBytes } from 'node:crypto';
import { constants, readFileSync, readdirSync, type Dirent } from 'node:fs';
import { access, chmod, mkdir, open, readdir, rename, rm, rmdir, stat, type FileHandle } from 'node:fs/promises';
import { systemCode } from '@eitri/core/kit';

/** `file` is a regular one. */
export type EntryKind = 'file' | 'folder' | 'other';

export interface FolderEntry {
  readonly name: string;
  readonly kind: EntryKind;
}

export interface EntryFacts {
  readonly kind: EntryKind;
  readonly sizeBytes: number;
  /** Permission bits. */
  readonly mode: number;
}

/** A file that is open. Closed exactly once, whatever happened before. */
export interface OpenFile {
  readonly stat: () => Promise<EntryFacts>;
  readonly chmod: (mode: number) => Promise<void>;
  readonly read: () => Promise<Buffer>;
  /** Writes all of it; a rejection may leave a part. */
  readonly write: (data: string | Uint8Array) => Promise<void>;
  /** Resolved: its bytes survive a power cut. Its name may not: that is its folder's. */
  readonly sync: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface FileSystem {
  /** For reading. Never waits for whoever may be at the other end of a FIFO. */
  readonly openToRead: (path: string) => Promise<OpenFile>;
  /** A new file, for writing; `EEXIST` where something is already. */
  readonly create: (path: string, mode: number) => Promise<OpenFile>;
  /** Replaces what is at `to`, in one moment. */
  readonly rename: (from: string, to: string) => Promise<void>;
  /** Resolved: the names in the folder, new ones and removed ones, survive a power cut. `EINVAL`: it can't do that. */
  readonly syncFolder: (path: string) => Promise<void>;
  /** One level. */
  readonly makeFolder: (path: string, mode: number) => Promise<void>;
  readonly chmod: (path: string, mode: number) => Promise<void>;
  /** Rejects with `ENOENT` where nothing is; follows links. */
  readonly stat: (path: string) => Promise<EntryFacts>;
  /** Whether its name leads to anything; rejects where that can't be told. */
  readonly isThere: (path: string) => Promise<boolean>;
  readonly list: (folder: string) => Promise<readonly FolderEntry[]>;
  /** A file; nothing there is fine. */
  readonly remove: (path: string) => Promise<void>;
  /** A file, or a folder with all that is in it, one after the other; nothing there is fine. */
  readonly removeTree: (path: string) => Promise<void>;
  /** An empty folder. */
  readonly removeFolder: (path: string) => Promise<void>;
  /** At once: a thousand small reads through the thread pool take ten times as long. */
  readonly listNow: (folder: string) => readonly FolderEntry[];
  readonly readNow: (path: string) => string;
  /** Twelve hex digits for the name of a temporary file; two calls, by whomever, give different ones. */
  readonly uniqueName: () => string;
}

/** This machine's. */
export class DiskFiles implements FileSystem {
  readonly openToRead = async (path: string): Promise<OpenFile> =>
    openFile(await open(path, constants.O_RDONLY | constants.O_NONBLOCK));

  readonly create = async (path: string, mode: number): Promise<OpenFile> => openFile(await open(path, 'wx', mode));

  readonly rename = rename;

  readonly syncFolder = async (path: string): Promise<void> => {
    const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  };

  readonly makeFolder = async (path: string, mode: number): Promise<void> => {
    await mkdir(path, { mode });
  };

  readonly chmod = chmod;

  readonly stat = async (path: string): Promise<EntryFacts> => factsOf(await stat(path));

  readonly isThere = async (path: string): Promise<boolean> => {
    try {
      await access(path);
      return true;
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return false;
      throw error;
    }
  };

  readonly list = async (folder: string): Promise<readonly FolderEntry[]> =>
    (await readdir(folder, { withFileTypes: true })).map(entryOf);

  readonly remove = (path: string): Promise<void> => rm(path, { force: true });

  readonly removeTree = (path: string): Promise<void> => rm(path, { recursive: true, force: true });

  readonly removeFolder = rmdir;

  readonly listNow = (folder: string): readonly FolderEntry[] =>
    readdirSync(folder, { withFileTypes: true }).map(entryOf);

  readonly readNow = (path: string): string => readFileSync(path, 'utf8');

  readonly uniqueName = (): string => randomBytes(6).toString('hex');
}

const openFile = (file: FileHandle): OpenFile => ({
  stat: async () => factsOf(await file.stat()),
  chmod: (mode) => file.chmod(mode),
  read: () => file.readFile(),
  write: (data) => file.writeFile(data),
  sync: () => file.sync(),
  close: () => file.close(),
});

interface Kinds {
  readonly isFile: () => boolean;
  readonly isDirectory: () => boolean;
}

const kindOf = (of: Kinds): EntryKind => (of.isFile() ? 'file' : of.isDirectory() ? 'folder' : 'other');
const entryOf = (entry: Dirent): FolderEntry => ({ name: entry.name, kind: kindOf(entry) });
const factsOf = (stats: Kinds & { readonly size: number; readonly mode: number }): EntryFacts => ({
  kind: kindOf(stats),
  sizeBytes: stats.size,
  mode: stats.mode & 0o7777,
});
