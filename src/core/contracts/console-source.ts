import type { Duplex } from 'node:stream';
import type { VmUid } from './vm-spec.js';

/**
 * Opens a backend's serial consoles. The pump is its only caller.
 *
 * Call order: `open` after `Provisioner.boot` called `pumpHooks.ensure`, and again after each end of the stream, until
 * the pump is stopped. After a restart of the agent it may be the first call of all for a guest.
 * Concurrency: at most one stream and one `open` a guest; those of several guests at once.
 */
export interface ConsoleSource {
  /**
   * Connects to the guest's serial line: bytes read are what the guest printed, bytes written are typed. Called again
   * after an end of stream, with backoff, until the pump is stopped (a guest reboot closes the line for a moment). Not
   * idempotent: each call is a connection of its own, and resolved means that it stands.
   *
   * The signal bounds the connecting, and not the stream. Rejects, retryable, while the line is not there; no error of
   * it is permanent. The caller half-closes with `end()` and reads on to the end of the stream before it destroys it: a
   * stream closed with unread bytes in it can end some VMMs' console for good.
   */
  readonly open: (uid: VmUid, signal: AbortSignal) => Promise<Duplex>;
}
