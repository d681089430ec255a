/**
 * What is known of one VM's published ports, and whether it may be out of date.
 *
 * Owns the last answer of whoever publishes, and for what it was given. Never publishes anything itself.
 */
import type { Observation, PublishState, VmRecord } from '../contracts/index.js';
import { stableJson } from '../kit/index.js';
import { isAlive } from './decide.js';

export class PublishedPorts {
  private states: readonly PublishState[] = [];
  private answeredFor: string | undefined;
  private answeredAtMs = 0;

  get all(): readonly PublishState[] {
    return this.states;
  }

  /** Whether one of them is to be tried again. */
  get waits(): boolean {
    return this.states.some((port) => port.state === 'busy');
  }

  /** Whether whoever publishes must be asked again: never asked for this, or a busy port has waited long enough. */
  stale(record: VmRecord | undefined, observed: Observation, nowMs: number, retryMs: number): boolean {
    if (record === undefined || !isAlive(observed)) return false;
    if (this.answeredFor === undefined && record.spec.exposures.length === 0) return false;
    if (this.answeredFor !== keyOf(record, observed)) return true;
    return this.waits && nowMs - this.answeredAtMs >= retryMs;
  }

  /** Takes an answer. An empty one forgets what it was for: with a VMM gone, the next one is asked anew. */
  set(states: readonly PublishState[]): void {
    this.states = states;
    if (states.length === 0) this.answeredFor = undefined;
  }

  /** The answer is complete, and was for this. */
  answered(record: VmRecord | undefined, observed: Observation, nowMs: number): void {
    this.answeredAtMs = nowMs;
    this.answeredFor = record === undefined ? undefined : keyOf(record, observed);
  }
}

/** Another declaration, or another VMM behind it, needs another answer. */
const keyOf = (record: VmRecord, observed: Observation): string =>
  stableJson([record.spec.exposures, isAlive(observed) ? observed.pid : 0]);
