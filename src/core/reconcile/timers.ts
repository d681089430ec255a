/**
 * The durations in a record, moved on by the time that has passed. Pure. They grow by the monotonic clock alone: never by a
 * jump of the wall clock, never by the time in which no agent ran.
 */
import type { DesiredLife, VmRecord } from '../contracts/index.js';

type Kind = DesiredLife['kind'] | undefined;

export interface Passed {
  readonly ms: number;
  /** The VMM lives. */
  readonly alive: boolean;
  /** How long of it the life was missed, as it is missed now, in contact with the control plane. */
  readonly missedMs: number;
}

export function movedOn(record: VmRecord, { ms, alive, missedMs }: Passed): VmRecord {
  return {
    ...record,
    upMs: alive ? record.upMs + ms : record.upMs,
    waitedMs: record.waitedMs + ms,
    shelvedMs: record.shelvedMs + missedMs,
    ...(record.stop === undefined ? {} : { stop: { ...record.stop, elapsedMs: record.stop.elapsedMs + ms } }),
  };
}

export const isMissed = (wanted: Kind): boolean => wanted === 'tombstoned' || wanted === 'vanished';

/**
 * The grace that was used up, after a life came to be wanted otherwise. It starts afresh when the life comes back, and when
 * it is missed in another way: one that was long vanished has a whole tombstone's grace too. Nobody's word changes nothing.
 */
export function graceAfter(usedMs: number, before: Kind, now: Kind): number {
  if (now === 'present') return 0;
  return isMissed(before) && isMissed(now) && before !== now ? 0 : usedMs;
}
