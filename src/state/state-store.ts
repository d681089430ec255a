/**
 * The agent's memory on disk: one folder a life, `record.json` in it, each write whole and durable.
 *
 * States of a life's folder: a record that can be read; a record that can't (unreadable: kept, and told); no record. The
 * last is a leftover of a life that was being made or removed, since a record is written before all else and goes last:
 * it is removed at the load. Unless a disk or a pidfile is in it, which only happens when somebody took the record away:
 * then it is unreadable like any other, and kept.
 *
 * Serial for each uid; lives do not wait for each other. Held by test/unit/state/state-store.test.ts, and on full and
 * read-only disks by test/integration/state/full-disk.test.ts.
 */
import { join } from 'node:path';
import { inject, injectable } from 'tsyringe';
import {
  LOGGER,
  type LoadedRecord,
  type Logger,
  type StateStore,
  type VmPaths,
  type VmRecord,
  type VmUid,
} from '@eitri/core/contracts';
import { errorLine, isVmUid, KeyedMutex, permanent, retryable, systemCode } from '@eitri/core/kit';
import {
  ATOMIC_FILES,
  diskFiles,
  PASSAGE_FOLDER_MODE,
  PRIVATE_FOLDER_MODE,
  type AtomicFiles,
  type FolderEntry,
} from '../host/atomic-file.js';
import { stateBadError, stateWriteError } from './state-error.js';
import type { LockedFolder } from './folder-lock.js';
import { RECORD_NAME, type StatePaths } from './state-paths.js';
import { formatStored, parseStored, RECORD_FIELDS, recordFormat } from './state-schema.js';

export const STATE_PATHS = Symbol.for('eitri.state-paths@1');

const MAX_RECORD_BYTES = 4 * 2 ** 20;
/** How many records are read before others of this process get their turn. */
const SLICE = 64;

type Fields = Readonly<Record<string, unknown>>;

@injectable()
export class FileStateStore implements StateStore {
  private readonly locks = new KeyedMutex();
  /** Of each life whose file was read or written: its fields that this agent does not know. */
  private readonly unknownFields = new Map<VmUid, Fields>();

  constructor(
    @inject(STATE_PATHS) private readonly paths: StatePaths,
    @inject(LOGGER) private readonly log: Logger,
    @inject(ATOMIC_FILES) private readonly files: AtomicFiles,
  ) {}

  /**
   * Makes the folders, and clears away what interrupted writes left: once, at start, with the state lock held. Rejects
   * if the folder of the records is gone from a state that was in use: an empty one in its place would read as "no VMs".
   */
  readonly prepare = async (): Promise<void> => {
    const { stateDir, runDir, vms, images, volumes, control } = this.paths;
    try {
      await this.files.ensureNamedFolder(stateDir, PASSAGE_FOLDER_MODE);
      await this.files.ensureNamedFolder(runDir, PASSAGE_FOLDER_MODE);
    } catch (cause) {
      throw stateWriteError('make the agent’s folders', `${stateDir} and ${runDir}`, cause);
    }
    if ((await this.files.system.isThere(control)) && !(await this.files.system.isThere(vms))) {
      throw stateBadError(vms, 'it is gone, though control.json beside it says that this state is in use');
    }
    try {
      await this.files.ensureFolder(vms, PASSAGE_FOLDER_MODE);
      // As the image cache makes it: a start that is refused leaves the folder as it was.
      await this.files.ensureFolder(images, PASSAGE_FOLDER_MODE);
      await this.files.ensureFolder(volumes, PRIVATE_FOLDER_MODE);
      await this.files.syncFolder(stateDir);
      await this.sweep();
    } catch (cause) {
      throw stateWriteError('make the agent’s folders', stateDir, cause);
    }
  };

  readonly loadRecords = async (signal: AbortSignal): Promise<readonly LoadedRecord[]> => {
    const { vms } = this.paths;
    let entries: readonly FolderEntry[];
    try {
      entries = this.files.system.listNow(vms);
    } catch (cause) {
      // `prepare` made it. Gone now, it is not an empty one.
      throw retryable(`read the records in ${vms}`, { cause });
    }
    const loaded: LoadedRecord[] = [];
    for (const [i, entry] of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1)).entries()) {
      if (i % SLICE === SLICE - 1) await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      const one = await this.loadOne(entry, signal);
      if (one !== undefined) loaded.push(one);
    }
    return loaded;
  };

  /**
   * The uids of all lives that have a folder here, which a life has from before its first side effect until after its
   * last. Unlike `loadRecords` it removes nothing, so that it may be asked while lives are made. Rejects where a record
   * stands in a folder that somebody renamed: whose it is can't be told.
   */
  readonly recordedUids = async (signal: AbortSignal): Promise<ReadonlySet<string>> => {
    const { vms } = this.paths;
    const uids = new Set<string>();
    let entries: readonly FolderEntry[];
    try {
      entries = await this.files.system.list(vms);
    } catch (cause) {
      throw retryable(`read the records in ${vms}`, { cause });
    }
    for (const entry of entries) {
      const { name } = entry;
      signal.throwIfAborted();
      if (isVmUid(name)) uids.add(name);
      else if (entry.kind === 'folder' && (await this.files.system.isThere(join(vms, name, RECORD_NAME))))
        throw retryable(`tell whose record stands in ${join(vms, name)}: the folder's name is not a uid`);
    }
    return uids;
  };

  readonly writeRecord = (record: VmRecord): Promise<void> =>
    this.locks.run(record.uid, async () => {
      const { uid } = record;
      const path = this.paths.record(uid);
      const unknown = this.unknownFields.get(uid) ?? (await this.readUnknownFields(uid, path));
      try {
        if (!this.unknownFields.has(uid)) await this.ensureFolders(uid);
        await this.files.write(path, formatStored({ ...unknown, ...record }));
      } catch (cause) {
        // Its folder may be what is missing: made again at the next try.
        this.unknownFields.delete(uid);
        throw stateWriteError(`write the record of ${record.id}`, path, cause);
      }
      this.unknownFields.set(uid, unknown);
    });

  readonly removeVm = (uid: VmUid, signal: AbortSignal): Promise<void> =>
    this.locks.run(
      uid,
      async () => {
        const { folder, runFolder } = this.paths.pathsOf(uid);
        try {
          await this.files.system.removeTree(runFolder);
          // RECORD LAST: without it nobody would know whose the rest is.
          for (const name of await this.namesIn(folder)) {
            if (name === RECORD_NAME) continue;
            signal.throwIfAborted();
            await this.files.system.removeTree(join(folder, name));
          }
          if (await this.files.system.isThere(folder)) {
            await this.files.syncFolder(folder);
            await this.files.system.removeTree(join(folder, RECORD_NAME));
            await this.files.system.removeFolder(folder);
            await this.files.syncFolder(this.paths.vms);
          }
        } catch (cause) {
          if (signal.aborted && cause === signal.reason) throw cause;
          throw retryable(`remove ${folder}`, { cause });
        }
        this.unknownFields.delete(uid);
      },
      signal,
    );

  readonly pathsOf = (uid: VmUid): VmPaths => this.paths.pathsOf(uid);

  /** A record is written often, and an agent that is killed is mostly killed in such a write. */
  private async sweep(): Promise<void> {
    const { stateDir, volumes, vms } = this.paths;
    await this.files.sweepTemps(stateDir);
    await this.files.sweepTemps(volumes);
    for (const name of await this.namesIn(vms)) {
      if (!isVmUid(name)) continue;
      const { folder, keysFolder } = this.paths.pathsOf(name);
      try {
        await this.files.sweepTemps(folder);
        await this.files.sweepTemps(keysFolder);
      } catch (err) {
        // One life's litter, or its odd folder, which the load tells of, stops no start.
        this.log.warn('state.litter.kept', { uid: name, err });
      }
    }
  }

  private async loadOne(entry: FolderEntry, signal: AbortSignal): Promise<LoadedRecord | undefined> {
    const { name } = entry;
    const path = join(this.paths.vms, name, RECORD_NAME);
    const unreadable = (why: string): LoadedRecord => ({ kind: 'unreadable', uid: name, path, why });
    if (!isVmUid(name)) {
      // Not ours (lost+found), but for a folder that somebody renamed with a life in it.
      return entry.kind === 'folder' && (await this.files.system.isThere(path))
        ? unreadable('its folder’s name is not a uid')
        : undefined;
    }
    if (entry.kind !== 'folder') return unreadable('something that is no folder stands in its folder’s place');
    let text: string;
    try {
      text = this.files.system.readNow(path);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return this.loadWithoutRecord(name, signal, unreadable);
      return unreadable(errorLine(error));
    }
    try {
      const record = parseStored(recordFormat, text);
      if (record.uid !== name) return unreadable(`it is the record of ${record.uid}, copied or moved here`);
      this.unknownFields.set(name, unknownOf(record));
      return { kind: 'record', record };
    } catch (error) {
      return unreadable(errorLine(error));
    }
  }

  private async loadWithoutRecord(
    uid: VmUid,
    signal: AbortSignal,
    unreadable: (why: string) => LoadedRecord,
  ): Promise<LoadedRecord | undefined> {
    const { rootDisk, pidFile } = this.paths.pathsOf(uid);
    try {
      for (const path of [rootDisk, pidFile]) {
        if (await this.files.system.isThere(path)) return unreadable(`there is no record beside ${path}`);
      }
    } catch (error) {
      return unreadable(errorLine(error));
    }
    try {
      await this.removeVm(uid, signal);
      this.log.info('state.leftover.removed', { uid });
    } catch (err) {
      // It harms nobody: the next start tries again.
      this.log.warn('state.leftover.kept', { uid, err });
    }
    return undefined;
  }

  /** A record that can't be read is not written over: what stands in it may be all that is known of a disk. */
  private async readUnknownFields(uid: VmUid, path: string): Promise<Fields> {
    let text: string | undefined;
    try {
      text = await this.files.readIfThere(path, MAX_RECORD_BYTES);
      return text === undefined ? {} : unknownOf(parseStored(recordFormat, text));
    } catch (cause) {
      if (systemCode(cause) === 'ENOTDIR') throw stateWriteError(`write the record of ${uid}`, path, cause);
      throw permanent(`write ${path}: what stands there can not be read, and is kept`, {
        cause,
        code: 'RecordUnreadable',
      });
    }
  }

  private async namesIn(folder: string): Promise<readonly string[]> {
    try {
      return (await this.files.system.list(folder)).map(({ name }) => name);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  private async ensureFolders(uid: VmUid): Promise<void> {
    const { folder, guestFolder, keysFolder } = this.paths.pathsOf(uid);
    await this.files.ensureFolder(folder, PASSAGE_FOLDER_MODE);
    // Also where it was there: the try that made it may have failed before its name was durable.
    await this.files.syncFolder(this.paths.vms);
    await this.files.ensureFolder(guestFolder, PRIVATE_FOLDER_MODE);
    await this.files.ensureFolder(keysFolder, PRIVATE_FOLDER_MODE);
  }
}

function unknownOf(record: VmRecord): Fields {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !RECORD_FIELDS.has(name)));
}

/** Makes the state directory or the run directory itself, in which the lock stands that everything else waits for. */
export async function makeLockedFolder({ kind, path }: LockedFolder): Promise<void> {
  try {
    await diskFiles.ensureNamedFolder(path, PASSAGE_FOLDER_MODE);
  } catch (cause) {
    throw stateWriteError(`make the ${kind} directory`, path, cause);
  }
}
