/**
 * The durations in a record, moved on by the time that has passed. They grow by the monotonic clock alone: never by a
 * jump of the wall clock, never by the time in which no agent ran. A grace is counted by the name of its absence, so what
 * an earlier one used up counts for no later one, whatever of it is on disk.
 */
import type { Clock, DesiredLife, VmRecord } from '../contracts/index.js';
import { without } from './record.js';

export interface Passed {
  readonly ms: number;
  /** The VMM lives. */
  readonly alive: boolean;
  /** The absence for which it was missed all the while, in contact with the control plane; undefined: it was not. */
  readonly missed: string | undefined;
}

export function movedOn(record: VmRecord, { ms, alive, missed }: Passed): VmRecord {
  return {
    ...record,
    upMs: alive ? record.upMs + ms : record.upMs,
    waitedMs: record.waitedMs + ms,
    ...(missed === undefined ? {} : { shelved: { absence: missed, ms: shelvedMs(record, missed) + ms } }),
    ...(record.stop === undefined ? {} : { stop: { ...record.stop, elapsedMs: record.stop.elapsedMs + ms } }),
  };
}

/** How much time has passed since the last look, and for which absence all of it counts. */
export class DurationCounter {
  private countedAtMs: number | undefined;
  private missedAs: string | undefined;
  private wasInContact = false;

  constructor(
    private readonly clock: Clock,
    wanted: DesiredLife | undefined,
  ) {
    this.missedAs = absenceOf(wanted);
  }

  /** Time in which the contact was lost, or before the absence began, counts for no grace. */
  count(wanted: DesiredLife | undefined, inContact: boolean): Pick<Passed, 'ms' | 'missed'> {
    const passed = this.uncounted(inContact);
    this.countedAtMs = this.clock.monotonicMs();
    this.missedAs = absenceOf(wanted);
    this.wasInContact = inContact;
    return passed;
  }

  /** What the next count would answer, without counting it. */
  uncounted(inContact: boolean): Pick<Passed, 'ms' | 'missed'> {
    const now = this.clock.monotonicMs();
    const ms = this.countedAtMs === undefined ? 0 : Math.max(0, now - this.countedAtMs);
    return { ms, missed: inContact && this.wasInContact ? this.missedAs : undefined };
  }
}

/** For which absence a life is missed now. */
export const absenceOf = (wanted: DesiredLife | undefined): string | undefined =>
  wanted === undefined || wanted.kind === 'present' ? undefined : wanted.absence;

/** How much of the grace of this absence is used up: none, when what the record counted belongs to an earlier one. */
export const shelvedMs = ({ shelved }: VmRecord, absence: string): number =>
  shelved?.absence === absence ? shelved.ms : 0;

/** What was counted for an absence that is over is dropped. Nobody's word is not the end of one. */
export function forgetPast(record: VmRecord, wanted: DesiredLife | undefined): VmRecord {
  const { shelved } = record;
  return wanted === undefined || shelved === undefined || shelved.absence === absenceOf(wanted)
    ? record
    : without(record, 'shelved');
}
