import type { Exposure, VmUid } from './vm-spec.js';

/** How one exposure stands. `why` is a sentence for the operator. */
export type PublishState =
  | { readonly exposure: Exposure; readonly state: 'published' }
  /** Another process holds it; tried again at each later call. */
  | { readonly exposure: Exposure; readonly state: 'busy'; readonly why: string }
  /** This host can't publish it, now or later. */
  | { readonly exposure: Exposure; readonly state: 'refused'; readonly why: string };

/**
 * Publishes guests' ports on the host, where a plugin does that itself (a kernel path, or a VMM with a network of its
 * own). The capability `publishesPorts` says that it does.
 *
 * Call order: `publish` while the guest runs, as often as its exposures change or one was busy; `release` once it
 * stopped, and inside `Provisioner.destroy` too. Each may be the first call after a restart of the agent: what is
 * published is found out again. Concurrency: calls for one VM are serial, for several VMs at once.
 */
export interface PortPublisher {
  /**
   * Makes exactly these ports of a running guest published, by difference: one that stays is not touched and keeps its
   * connections. Idempotent. Resolves with one entry for each exposure, in their order; a busy port is an answer and
   * not an error. Rejects, retryable, when the state could not be found out; no error of it is permanent.
   */
  readonly publish: (
    uid: VmUid,
    exposures: readonly Exposure[],
    signal: AbortSignal,
  ) => Promise<readonly PublishState[]>;
  /**
   * Lets go of all ports of a VM. Idempotent, also for one that is gone; resolved means that none is held. Rejects,
   * retryable, when one is still held.
   */
  readonly release: (uid: VmUid, signal: AbortSignal) => Promise<void>;
}
