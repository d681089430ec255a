import type { VmPaths } from './vm-paths.js';
import type { LoadedRecord, VmRecord } from './vm-record.js';
import type { VmUid } from './vm-spec.js';

/**
 * The agent's memory on disk. Only what `src/app` composes sees it.
 *
 * Call order: `loadRecords` once, before any guest is touched; then for each life `writeRecord` before each step with a
 * side effect and after it, and `removeVm` at the end of its destruction; nothing is written of a life after that.
 * Concurrency: calls for one life are carried out in their order, lives do not wait for each other.
 *
 * Every write is atomic and on disk when it resolves; a failed one leaves what was there. What can't be read is told as
 * such, and never taken for what is not there. It stays inside the agent's process, so `pathsOf` answers at once.
 */
export interface StateStore {
  /**
   * All records, sorted by uid; one that can't be read is among them, as `unreadable`, and kept. A folder without
   * record, disk and process is the rest of a life that was being made or removed: it is taken away. Otherwise
   * idempotent. Rejects, retryable, when the folder of the records itself can't be read: an empty answer would mean
   * that there are no VMs.
   */
  readonly loadRecords: (signal: AbortSignal) => Promise<readonly LoadedRecord[]>;
  /**
   * Writes a record and makes its folders where they are missing. Unknown fields of an older file survive. Idempotent.
   * Resolved means that it survives a power cut. Rejects, retryable, on a full disk or an I/O error; permanent, with
   * `RecordUnreadable`, where what stands in its place can't be read: it may be all that is known of a disk.
   * No signal: a write that has begun is never given up half-way.
   */
  readonly writeRecord: (record: VmRecord) => Promise<void>;
  /**
   * Removes a life's folder and sockets: all content first, `record.json` last, then the folder, so that a crash
   * anywhere leaves something to resume from. Idempotent, also for a life that is gone. Resolved means that nothing of
   * it is on disk. Rejects, retryable, when a file would not go; the signal may end it between two files.
   */
  readonly removeVm: (uid: VmUid, signal: AbortSignal) => Promise<void>;
  /** Where this life's files stand. Derived from the uid, makes nothing; the same answer for the agent's life. */
  readonly pathsOf: (uid: VmUid) => VmPaths;
}
