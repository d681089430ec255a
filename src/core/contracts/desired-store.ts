import type { AcceptOutcome, DesiredIssue, DesiredSnapshot, DesiredState } from './desired-state.js';
import type { VmUid } from './vm-spec.js';

/**
 * Who wants which VMs, as far as the agent has accepted it: one lineage, ordered by (epoch, revision), on disk before
 * it is answered for.
 *
 * Call order: what was stored is loaded before anybody is handed the store. The engine reads and settles; one control
 * plane at a time says `setContact` and `accept`. Concurrency: all members at once; writes are made one after the
 * other, and what is read meanwhile is the state before or after one, never between. It stays inside the agent's
 * process, so reads answer at once from memory.
 */
export interface DesiredStore {
  /** What was last accepted; undefined before anything ever was. */
  readonly current: () => DesiredState | undefined;
  /** What stands in the way of somebody's word now, for status; replaced by each accepted snapshot. */
  readonly issues: () => readonly DesiredIssue[];
  /** Whether the control plane is in contact under a full snapshot: only then do graces count. */
  readonly inContact: () => boolean;
  /**
   * Called by the engine when all of a life is destroyed but its record: its entry goes, and its name may live again.
   * Idempotent, also for a life that was never wanted. Resolved means on disk. Rejects, retryable, when it can't be
   * written; then the entry stands. No signal: a write that has begun is never given up half-way.
   */
  readonly settled: (uid: VmUid) => Promise<void>;
  /**
   * Calls back after each change that is on disk, and each time that `inContact` has another answer: who counts a grace
   * stops and goes on at that moment. A listener that throws keeps none of the others from knowing. Returns the
   * unsubscription, which may be called twice.
   */
  readonly onChange: (listener: () => void) => () => void;
  /**
   * Fences, assigns uids, persists, and tells listeners, in this order. Called with every whole word, changed or not.
   * Idempotent: the same snapshot again is accepted with `changed` false, and writes nothing. Resolved as accepted
   * means on disk and current; a refusal is an answer, and leaves what stood. Rejects, retryable, when it can't be
   * written: what was wanted before still counts. The signal bounds the waiting for a turn, never a write that has
   * begun.
   */
  readonly accept: (snapshot: DesiredSnapshot, signal: AbortSignal) => Promise<AcceptOutcome>;
  /**
   * A control plane says that it is (not) in contact, and why not: that stands among the issues until it is again.
   * Idempotent, never throws. After a loss only a newly accepted snapshot makes `inContact` true again.
   */
  readonly setContact: (inContact: boolean, why?: DesiredIssue) => void;
}
