/**
 * The agent's memory on disk. Only what `src/app` composes sees it.
 *
 * Every write is atomic and on disk when it resolves; a failed one leaves what was there. An unreadable state is never
 * read as an empty one.
 */
import type { LoadedRecord, VmRecord } from './vm-record.js';
import type { VmPaths } from './vm-paths.js';
import type { VmUid } from './vm-spec.js';

export interface StateStore {
  /** All records, sorted by uid. Rejects when the folder of the records itself can't be read. */
  readonly loadRecords: (signal: AbortSignal) => Promise<readonly LoadedRecord[]>;
  /** Writes a record and makes its folders where they are missing. Unknown fields of an older file survive. */
  readonly writeRecord: (record: VmRecord) => Promise<void>;
  /**
   * Removes a life's folder and sockets: all content first, `record.json` last, then the folder, so that a crash anywhere
   * leaves something to resume from. Idempotent.
   */
  readonly removeVm: (uid: VmUid, signal: AbortSignal) => Promise<void>;
  /** Where this life's files stand. */
  readonly pathsOf: (uid: VmUid) => VmPaths;
}
