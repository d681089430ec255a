/**
 * A file system in memory that loses what POSIX lets it lose. Each file and each folder knows what of it was synced; a
 * power cut keeps that, and of the rest what the seed says: of a file its old bytes, its new ones, or a torn part; of a
 * folder any of the names that came and went since, in the order of a journal or, worse, each for itself. SIGKILL of the
 * agent loses nothing of it.
 *
 * The files of a `FakeHost` (disks, sockets, pidfiles) stand in the same tree, and are on disk at once: their rooms have
 * tests of their own. Below `/run` nothing outlives a boot, and no disk is full.
 */
import { bug } from '@eitri/core/kit';
import { RUN_PREFIX, type FakeHost } from '@eitri/conformance';
import { createHash } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import type { EntryFacts, EntryKind, FileSystem, FolderEntry, OpenFile } from '../../src/host/file-system.js';
import type { Prng } from './history/prng.js';

const CHANGING = [
  'create', 'write', 'sync', 'rename', 'syncFolder', 'makeFolder', 'chmod', 'remove', 'removeFolder',
] as const; // prettier-ignore
export type FileOperation = (typeof CHANGING)[number] | 'openToRead' | 'read' | 'stat' | 'list';

const isChanging = (operation: FileOperation): boolean => (CHANGING as readonly string[]).includes(operation);
const NEEDS_SPACE: ReadonlySet<FileOperation> = new Set(['create', 'write', 'sync', 'makeFolder']);

/** A call of the file system that is about to change something. */
export interface FileCall {
  readonly member: `files.${FileOperation}`;
  readonly phase: 'before';
  readonly path: string;
}

interface SimFile {
  readonly kind: 'file';
  bytes: Buffer;
  /** What of it is on disk. */
  synced: Buffer;
  mode: number;
}

/** Names that came (with what they lead to) and went in one moment. */
type Change = ReadonlyMap<string, SimNode | undefined>;

interface SimFolder {
  readonly kind: 'folder';
  names: Map<string, SimNode>;
  synced: Map<string, SimNode>;
  /** Since the last sync, oldest first. */
  unsynced: Change[];
  mode: number;
}

type SimNode = SimFile | SimFolder;

interface Failure {
  readonly code: string;
  after: number;
  left: number;
}

export class SimFiles implements FileSystem {
  /** Told before each call that changes something. May never come back: the agent died. */
  onCall: ((call: FileCall) => void | Promise<void>) | undefined;
  /** No byte fits any more. */
  full = false;
  private root = newFolder(0o755);
  private failures: Failure[] = [];
  private lastName = 0;
  private readonly journal = createHash('sha256');

  constructor(private readonly host: FakeHost) {}

  /** After so many more changing calls, `times` of them fail. */
  fail(code: string, after: number, times: number): void {
    this.failures.push({ code, after, left: times });
  }

  /** Nothing fails any more. */
  heal(): void {
    this.failures = [];
    this.full = false;
  }

  /** All calls so far and how each ended. */
  digest(): string {
    return this.journal.copy().digest('hex');
  }

  /** The bytes of a file as a reader sees them now: the same object until it is written. */
  bytes(path: string): Buffer | undefined {
    const node = this.find(path);
    return node?.kind === 'file' ? node.bytes : undefined;
  }

  /** What stands in a folder, but for the host's files. */
  names(folder: string): readonly string[] {
    const node = this.find(folder);
    return node?.kind === 'folder' ? [...node.names.keys()].sort() : [];
  }

  /** All paths of files and folders below a folder. */
  below(folder: string): readonly string[] {
    return this.names(folder).flatMap((name) => [join(folder, name), ...this.below(join(folder, name))]);
  }

  /** The machine goes down in good order: all is written, and what lives in memory alone is gone. */
  shutDown(): void {
    flush(this.root);
    this.forgetRun();
  }

  /** The machine loses power. */
  powerCut(random: Prng): void {
    this.root = cutFolder(this.root, random, new Map());
    this.forgetRun();
    // A file whose folder never reached the disk is nowhere.
    for (const path of [...this.host.files.keys()]) {
      if (path.startsWith('/state/vms/') && this.find(dirname(path))?.kind !== 'folder') this.host.files.delete(path);
    }
  }

  readonly openToRead = async (path: string): Promise<OpenFile> => {
    await this.begin('openToRead', path);
    return this.open(path, this.file(path));
  };

  readonly create = async (path: string, mode: number): Promise<OpenFile> => {
    await this.begin('create', path);
    const folder = this.folder(dirname(path));
    if (this.find(path) !== undefined) throw failure('EEXIST', 'create', path);
    const file: SimFile = { kind: 'file', bytes: Buffer.alloc(0), synced: Buffer.alloc(0), mode };
    change(folder, new Map([[basename(path), file]]));
    return this.open(path, file);
  };

  readonly rename = async (from: string, to: string): Promise<void> => {
    await this.begin('rename', to);
    if (dirname(from) !== dirname(to)) throw bug('a rename between folders is not simulated');
    const folder = this.folder(dirname(to));
    const node = this.find(from);
    if (node === undefined) throw failure('ENOENT', 'rename', from);
    if (this.find(to)?.kind === 'folder') throw failure('EISDIR', 'rename', to);
    change(
      folder,
      new Map([
        [basename(from), undefined],
        [basename(to), node],
      ]),
    );
  };

  readonly syncFolder = async (path: string): Promise<void> => {
    await this.begin('syncFolder', path);
    const folder = this.folder(path);
    folder.synced = new Map(folder.names);
    folder.unsynced = [];
  };

  readonly makeFolder = async (path: string, mode: number): Promise<void> => {
    // As a kernel does: what is there already needs no room.
    if (path === '/' || this.find(path) !== undefined) throw failure('EEXIST', 'mkdir', path);
    await this.begin('makeFolder', path);
    change(this.folder(dirname(path)), new Map([[basename(path), newFolder(mode)]]));
  };

  readonly chmod = async (path: string, mode: number): Promise<void> => {
    await this.begin('chmod', path);
    const node = this.find(path);
    if (node === undefined) throw failure('ENOENT', 'chmod', path);
    node.mode = mode;
  };

  readonly stat = async (path: string): Promise<EntryFacts> => {
    await this.begin('stat', path);
    const node = this.find(path);
    if (node !== undefined) return factsOf(node);
    const kind = this.hostKind(path);
    if (kind === undefined) throw failure('ENOENT', 'stat', path);
    return { kind, sizeBytes: this.host.files.get(path)?.sizeBytes ?? 0, mode: 0o600 };
  };

  readonly isThere = async (path: string): Promise<boolean> => {
    await this.begin('stat', path);
    return this.find(path) !== undefined || this.hostKind(path) !== undefined;
  };

  readonly list = async (folder: string): Promise<readonly FolderEntry[]> => {
    await this.begin('list', folder);
    return this.listNow(folder);
  };

  readonly listNow = (folder: string): readonly FolderEntry[] => {
    const node = this.find(folder);
    if (node === undefined && this.hostKind(folder) !== 'folder') throw failure('ENOENT', 'scandir', folder);
    if (node?.kind === 'file') throw failure('ENOTDIR', 'scandir', folder);
    const kinds = new Map<string, EntryKind>();
    for (const path of this.host.list(folder)) {
      const [name = '', ...deeper] = path.slice(folder.length + 1).split('/');
      kinds.set(name, deeper.length > 0 ? 'folder' : 'file');
    }
    for (const [name, { kind }] of node?.names ?? []) kinds.set(name, kind);
    return [...kinds].map(([name, kind]) => ({ name, kind })).sort((a, b) => (a.name < b.name ? -1 : 1));
  };

  readonly readNow = (path: string): string => this.file(path).bytes.toString('utf8');

  readonly remove = async (path: string): Promise<void> => {
    await this.begin('remove', path);
    this.host.remove(path);
    const node = this.find(path);
    if (node?.kind === 'folder') throw failure('EISDIR', 'unlink', path);
    if (node !== undefined) change(this.folder(dirname(path)), new Map([[basename(path), undefined]]));
  };

  readonly removeTree = async (path: string): Promise<void> => {
    const node = this.find(path);
    if (node?.kind !== 'folder') {
      await this.remove(path);
      return;
    }
    for (const { name } of this.listNow(path)) await this.removeTree(join(path, name));
    await this.removeFolder(path);
  };

  readonly removeFolder = async (path: string): Promise<void> => {
    await this.begin('removeFolder', path);
    const folder = this.folder(path);
    if (folder.names.size > 0 || this.host.list(path).length > 0) throw failure('ENOTEMPTY', 'rmdir', path);
    change(this.folder(dirname(path)), new Map([[basename(path), undefined]]));
  };

  readonly uniqueName = (): string => (++this.lastName).toString(16).padStart(12, '0');

  private open(path: string, file: SimFile): OpenFile {
    return {
      stat: () => Promise.resolve(factsOf(file)),
      // Of an open file it needs no room, and what it does is not looked at by name.
      chmod: (mode) => {
        file.mode = mode;
        return Promise.resolve();
      },
      read: async () => {
        await this.begin('read', path);
        return Buffer.from(file.bytes);
      },
      write: async (data) => {
        const bytes = Buffer.from(data);
        try {
          await this.begin('write', path);
        } catch (error) {
          // A full disk takes what fits.
          file.bytes = bytes.subarray(0, bytes.length >> 1);
          throw error;
        }
        file.bytes = bytes;
      },
      sync: async () => {
        await this.begin('sync', path);
        file.synced = file.bytes;
      },
      close: () => Promise.resolve(),
    };
  }

  private async begin(operation: FileOperation, path: string): Promise<void> {
    if (isChanging(operation)) this.journal.update(`${operation} ${path}\n`);
    await this.onCall?.({ member: `files.${operation}`, phase: 'before', path });
    const code = isChanging(operation) ? this.failing(operation, path) : undefined;
    if (code === undefined) return;
    this.journal.update(`${code}\n`);
    throw failure(code, operation, path);
  }

  private failing(operation: FileOperation, path: string): string | undefined {
    if (`${path}/`.startsWith(RUN_PREFIX)) return undefined;
    if (this.full && NEEDS_SPACE.has(operation)) return 'ENOSPC';
    let code: string | undefined;
    for (const one of this.failures) {
      if (one.after > 0) one.after--;
      else if (one.left > 0 && code === undefined) {
        one.left--;
        code = one.code;
      }
    }
    return code;
  }

  private find(path: string): SimNode | undefined {
    let node: SimNode | undefined = this.root;
    for (const name of path.split('/')) {
      if (name === '') continue;
      if (node?.kind !== 'folder') return undefined;
      node = node.names.get(name);
    }
    return node;
  }

  private folder(path: string): SimFolder {
    const node = this.find(path);
    if (node?.kind === 'folder') return node;
    throw failure(node === undefined ? 'ENOENT' : 'ENOTDIR', 'open', path);
  }

  private file(path: string): SimFile {
    const node = this.find(path);
    if (node?.kind === 'file') return node;
    throw failure(node === undefined ? 'ENOENT' : 'EISDIR', 'open', path);
  }

  private hostKind(path: string): EntryKind | undefined {
    if (this.host.files.has(path)) return 'file';
    return this.host.list(path).length > 0 ? 'folder' : undefined;
  }

  private forgetRun(): void {
    this.root.names.delete('run');
    this.root.synced.delete('run');
  }
}

const newFolder = (mode: number): SimFolder => ({
  kind: 'folder',
  names: new Map(),
  synced: new Map(),
  unsynced: [],
  mode,
});

function change(folder: SimFolder, names: Change): void {
  folder.unsynced.push(names);
  apply(folder.names, names);
}

function apply(names: Map<string, SimNode>, changed: Change): void {
  for (const [name, node] of changed) {
    if (node === undefined) names.delete(name);
    else names.set(name, node);
  }
}

function flush(node: SimNode): void {
  if (node.kind === 'file') {
    node.synced = node.bytes;
    return;
  }
  node.synced = new Map(node.names);
  node.unsynced = [];
  for (const child of node.names.values()) flush(child);
}

/** `seen`: a file may have two names after a cut, and is one file all the same. */
function cutNode(node: SimNode, random: Prng, seen: Map<SimNode, SimNode>): SimNode {
  const known = seen.get(node);
  if (known !== undefined) return known;
  const left = node.kind === 'file' ? cutFile(node, random) : cutFolder(node, random, seen);
  seen.set(node, left);
  return left;
}

function cutFile(file: SimFile, random: Prng): SimFile {
  const bytes = file.bytes.equals(file.synced) ? file.synced : tornBytes(file, random);
  return { kind: 'file', bytes, synced: bytes, mode: file.mode };
}

function tornBytes({ bytes, synced }: SimFile, random: Prng): Buffer {
  switch (random.below(4)) {
    case 0:
      return synced;
    case 1:
      return bytes;
    case 2:
      // The size was written, and the blocks were not.
      return Buffer.alloc(bytes.length);
    default:
      return bytes.subarray(0, random.below(bytes.length + 1));
  }
}

function cutFolder(folder: SimFolder, random: Prng, seen: Map<SimNode, SimNode>): SimFolder {
  const names = new Map(folder.synced);
  const journaled = random.chance(0.5);
  const kept = random.below(folder.unsynced.length + 1);
  for (const [at, changed] of folder.unsynced.entries()) {
    if (journaled ? at < kept : random.chance(0.5)) apply(names, changed);
  }
  const left = newFolder(folder.mode);
  for (const [name, node] of [...names].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const cut = cutNode(node, random, seen);
    left.names.set(name, cut);
    left.synced.set(name, cut);
  }
  return left;
}

const factsOf = (node: SimNode): EntryFacts => ({
  kind: node.kind,
  sizeBytes: node.kind === 'file' ? node.bytes.length : 0,
  mode: node.mode,
});

const failure = (code: string, call: string, path: string): Error =>
  Object.assign(new Error(`${code}: ${call} '${path}'`), { code });
