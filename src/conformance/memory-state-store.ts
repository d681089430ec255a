/**
 * Records in memory. It stands for a folder on disk, so it is kept over restarts of an agent, and hands out copies
 * only.
 */
import type { LoadedRecord, StateStore, VmPaths, VmRecord, VmUid } from '@eitri/core/contracts';
import { retryable, shortHash } from '@eitri/core/kit';
import type { CallLog } from './call-log.js';
import { RUN_PREFIX, type FakeHost } from './fake-host.js';

/** What a `MemoryStateStore` is joined to. */
export interface MemoryStateStoreOptions {
  /** Its files go when a VM is removed. */
  readonly host: FakeHost;
  readonly calls?: CallLog;
  readonly folder?: string;
}

/** A `StateStore` in memory, for restarts of an agent within one test. */
export class MemoryStateStore implements StateStore {
  readonly calls: CallLog;
  /** Set: the folder of the records can't be read. */
  unreadableFolder: string | undefined;
  private readonly records = new Map<string, VmRecord>();
  private readonly damaged = new Map<string, string>();

  constructor(private readonly options: MemoryStateStoreOptions) {
    this.calls = options.calls ?? options.host.calls;
  }

  /** What is on disk for a VM now. */
  record(uid: VmUid): VmRecord | undefined {
    return structuredClone(this.records.get(uid));
  }

  /** All that can be read, sorted by uid. */
  all(): readonly VmRecord[] {
    return [...this.records.values()].sort(byUid).map((r) => structuredClone(r));
  }

  /** Puts a record there without a call, as an earlier agent did. */
  put(record: VmRecord): void {
    this.records.set(record.uid, structuredClone(record));
  }

  /** A record can't be read from now on. */
  damage(uid: VmUid, why = 'unexpected end of JSON input'): void {
    this.damaged.set(uid, why);
  }

  readonly loadRecords = (signal: AbortSignal): Promise<readonly LoadedRecord[]> =>
    this.calls.around('stateStore.loadRecords', undefined, () => {
      signal.throwIfAborted();
      if (this.unreadableFolder !== undefined) throw retryable(`read the records: ${this.unreadableFolder}`);
      const uids = [...new Set([...this.records.keys(), ...this.damaged.keys()])].sort();
      return uids.map((uid): LoadedRecord => {
        const why = this.damaged.get(uid);
        const record = this.records.get(uid);
        if (why !== undefined || record === undefined) {
          return { kind: 'unreadable', uid, path: `${this.folder(uid)}/record.json`, why: why ?? 'no such file' };
        }
        return { kind: 'record', record: structuredClone(record) };
      });
    });

  readonly writeRecord = (record: VmRecord): Promise<void> => {
    // Copied before the first wait: what the caller changes later is not what it wrote.
    const written = structuredClone(record);
    return this.calls.around('stateStore.writeRecord', record.uid, () => {
      this.records.set(written.uid, written);
    });
  };

  readonly removeVm = (uid: VmUid, signal: AbortSignal): Promise<void> =>
    this.calls.around('stateStore.removeVm', uid, () => {
      signal.throwIfAborted();
      const { folder, runFolder } = this.pathsOf(uid);
      this.options.host.remove(folder);
      this.options.host.remove(runFolder);
      this.records.delete(uid);
      this.damaged.delete(uid);
    });

  readonly pathsOf = (uid: VmUid): VmPaths => {
    const folder = this.folder(uid);
    const guestFolder = `${folder}/guest`;
    return {
      folder,
      guestFolder,
      rootDisk: `${guestFolder}/disk.raw`,
      seed: `${guestFolder}/seed.img`,
      vmmLog: `${guestFolder}/vmm.log`,
      pidFile: `${folder}/vmm.pid`,
      serialLog: `${folder}/serial.log`,
      keysFolder: `${folder}/keys`,
      runFolder: `${RUN_PREFIX}${shortHash(uid, 8)}`,
    };
  };

  private folder(uid: string): string {
    return `${this.options.folder ?? '/state'}/vms/${uid}`;
  }
}

const byUid = (a: VmRecord, b: VmRecord): number => (a.uid < b.uid ? -1 : 1);
