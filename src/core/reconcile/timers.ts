/**
 * The durations in a record, moved on by the time between two looks. Pure. They grow by the monotonic clock alone: never
 * by a jump of the wall clock, never by the time in which no agent ran.
 */
import type { DesiredLife, VmRecord } from '../contracts/index.js';

export interface Passed {
  readonly ms: number;
  /** The VMM lives. */
  readonly alive: boolean;
  readonly wanted: DesiredLife | undefined;
  /** In contact with the control plane at this look and at the one before. */
  readonly inContact: boolean;
}

export function movedOn(record: VmRecord, { ms, alive, wanted, inContact }: Passed): VmRecord {
  return {
    ...record,
    upMs: alive ? record.upMs + ms : record.upMs,
    waitedMs: record.waitedMs + ms,
    shelvedMs: shelvedMs(record, wanted, inContact ? ms : 0),
    ...(record.stop === undefined ? {} : { stop: { ...record.stop, elapsedMs: record.stop.elapsedMs + ms } }),
  };
}

/** A grace counts while its life is missed, and starts afresh when it comes back; nobody's word changes nothing. */
function shelvedMs(record: VmRecord, wanted: DesiredLife | undefined, countedMs: number): number {
  switch (wanted?.kind) {
    case undefined:
      return record.shelvedMs;
    case 'present':
      return 0;
    case 'tombstoned':
    case 'vanished':
      return record.shelvedMs + countedMs;
  }
}
