/**
 * Serial lines on real unix sockets that behave like those of two VMMs, with the guest's end in the test's hands.
 *
 * QEMU: the first client is served, a second one waits unserved until it leaves; without a client output is dropped; the
 * guest waits for a client that does not read; the line stays over a reboot.
 * cloud-hypervisor: the newest client is served and evicts the one before; a reboot closes the line, takes its path away
 * and binds it anew; since v53 output without a client is kept (1 MiB) and comes first; a client that closes with bytes
 * unread ends the console for good, although later clients can connect.
 */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { MIB } from '@eitri/core/kit';

export interface SerialBehaviour {
  readonly secondClient: 'waits' | 'evicts';
  readonly closesOnReboot: boolean;
  readonly keepsBacklog: boolean;
  readonly endsOnReset: boolean;
}

export const QEMU_LIKE: SerialBehaviour = {
  secondClient: 'waits',
  closesOnReboot: false,
  keepsBacklog: false,
  endsOnReset: false,
};
/** v53. */
export const CLOUD_HYPERVISOR_LIKE: SerialBehaviour = {
  secondClient: 'evicts',
  closesOnReboot: true,
  keepsBacklog: true,
  endsOnReset: true,
};

export class SerialSocket {
  private server: Server | undefined;
  /** Served first; the others wait. */
  private sockets: Socket[] = [];
  private readonly typedChunks: Buffer[] = [];
  private backlog: Buffer = Buffer.alloc(0);
  private ended = false;
  mostClients = 0;
  connections = 0;
  /** Clients that closed with bytes unread. */
  resets = 0;

  constructor(
    readonly path: string,
    private readonly behaviour: SerialBehaviour,
  ) {}

  async powerOn(): Promise<void> {
    await rm(this.path, { force: true });
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.accept(socket);
    });
    this.server = server;
    server.listen(this.path);
    await once(server, 'listening');
  }

  /** Resolves when the bytes have left the guest: at once, or when the client has room where the VMM makes it wait. */
  async print(bytes: Uint8Array | string): Promise<void> {
    const chunk = Buffer.from(bytes);
    const client = this.client;
    if (this.ended) return;
    if (client !== undefined) {
      if (!client.write(chunk)) await roomIn(client);
      return;
    }
    if (!this.behaviour.keepsBacklog) return;
    const all = Buffer.concat([this.backlog, chunk]);
    this.backlog = all.subarray(Math.max(0, all.length - MIB));
  }

  typed(): Buffer {
    return Buffer.concat(this.typedChunks);
  }

  get connected(): number {
    return this.sockets.length;
  }

  async reboot(): Promise<void> {
    if (!this.behaviour.closesOnReboot) return;
    await this.gone();
    await this.powerOn();
  }

  /** The VMM ends in good order: the client reads what is on its way, and the end; the path is taken away. */
  async gone(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.sockets.splice(0)) {
      socket.end();
      socket.resume();
    }
    await closed;
  }

  private get client(): Socket | undefined {
    return this.sockets[0];
  }

  private accept(socket: Socket): void {
    this.connections++;
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') return;
      this.resets++;
      if (this.behaviour.endsOnReset) this.ended = true;
    });
    socket.on('close', () => {
      this.leave(socket);
    });
    if (this.behaviour.secondClient === 'evicts') {
      for (const former of this.sockets.splice(0)) former.destroy();
    }
    this.sockets.push(socket);
    this.mostClients = Math.max(this.mostClients, this.sockets.length);
    if (this.sockets.length === 1) this.serve(socket);
  }

  private serve(socket: Socket): void {
    socket.on('data', (chunk: Buffer) => {
      if (!this.ended) this.typedChunks.push(chunk);
    });
    // A client that types no more is let go; what was printed for it still reaches it.
    socket.on('end', () => {
      this.leave(socket);
      socket.end();
    });
    if (this.ended || this.backlog.length === 0) return;
    socket.write(this.backlog);
    this.backlog = Buffer.alloc(0);
  }

  private leave(socket: Socket): void {
    const served = this.sockets[0] === socket;
    this.sockets = this.sockets.filter((one) => one !== socket);
    const next = this.client;
    if (served && next !== undefined) this.serve(next);
  }
}

/** Resolves when the client took what was written, or went. */
async function roomIn(client: Socket): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race(['drain', 'close'].map((event) => once(client, event, { signal: over.signal })));
  } catch {
    // It failed: it is as good as gone.
  } finally {
    over.abort();
  }
}
