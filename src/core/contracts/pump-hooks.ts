import type { VmUid } from './vm-spec.js';

/**
 * The life of a guest's serial pump, as its backend drives it.
 *
 * Call order: `ensure` inside `Provisioner.boot`, as soon as the VMM runs; `stop` inside `shutdown` once the guest is
 * gone, and inside `destroy`. Guests found running at the agent's start are taken over by the composition root, before
 * any of these; nobody else calls them. Concurrency: any; calls for one guest are carried out in their order, and guests
 * do not wait for each other.
 */
export interface PumpHooks {
  /**
   * Makes sure that one pump reads this guest's console. Idempotent: while one runs, nothing happens. Resolves once the
   * pump is registered, not once it is connected: the console's socket may come later. Rejects only on a bug.
   */
  readonly ensure: (uid: VmUid) => Promise<void>;
  /**
   * Ends the pump: what the socket still holds is read to its end (bounded), then it lets go; viewers are told.
   * Idempotent, also when none ever ran. Resolves when the socket is closed and the log is written. Rejects only on a
   * bug. No signal: the bound is its own, and a pump that is left half ended would hold the socket.
   */
  readonly stop: (uid: VmUid) => Promise<void>;
}
