import type { VmId } from './vm-spec.js';

/**
 * The operator's word on a mass vanishing: a role of the desired store of its own, because no control plane has it.
 *
 * Call order: as the store's. Concurrency: serial with the store's writes.
 */
export interface DesiredHolds {
  /**
   * Lets go of every held life, so that its grace counts from now on. Resolves with their names, sorted, once on disk.
   * Idempotent: with none held it resolves with an empty list. Rejects, retryable, when it can't be written: all stay
   * held.
   */
  readonly releaseHold: (signal: AbortSignal) => Promise<readonly VmId[]>;
}
