/**
 * Opens a guest's serial line: the unix socket on which QEMU listens.
 *
 * QEMU keeps the line over a reboot of the guest. What the guest prints while nobody is connected is dropped, and a
 * second client is not turned away but waits unserved until the first has gone: there must be one pump a guest.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { BackendHost, ConsoleSource, VmUid } from '@eitri/core/contracts';
import { serialSocketOf, type GuestPaths } from './guest-files.js';

export class QemuConsoleSource implements ConsoleSource {
  constructor(
    private readonly host: Pick<BackendHost, 'errors'>,
    private readonly paths: GuestPaths,
  ) {}

  readonly open = async (uid: VmUid, signal: AbortSignal): Promise<Duplex> => {
    const path = serialSocketOf(await this.paths.of(uid));
    signal.throwIfAborted();
    // Half-open: the pump ends its side first and reads on to the end.
    const socket = connect({ path, allowHalfOpen: true });
    const leave = (): void => {
      socket.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      await once(socket, 'connect');
    } catch (cause) {
      socket.destroy();
      throw this.host.errors.retryable(`connect to the console at ${path}`, { cause });
    } finally {
      signal.removeEventListener('abort', leave);
    }
    return socket;
  };
}
