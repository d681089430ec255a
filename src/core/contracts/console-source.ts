/**
 * Opens a backend's serial console. The pump is its only caller, and holds at most one stream a guest.
 */
import type { Duplex } from 'node:stream';
import type { VmUid } from './vm-spec.js';

export interface ConsoleSource {
  /**
   * Connects to the guest's serial line: bytes read are what the guest printed, bytes written are typed. Called again
   * after an end of stream, with backoff, until the pump is stopped (a guest reboot closes the line for a moment).
   *
   * The signal bounds the connecting, and not the stream. Rejects, retryable, while the line is not there. The caller
   * half-closes with `end()` and reads on to the end of the stream before it destroys it: a stream closed with unread
   * bytes in it can end some VMMs' console for good.
   */
  readonly open: (uid: VmUid, signal: AbortSignal) => Promise<Duplex>;
}
