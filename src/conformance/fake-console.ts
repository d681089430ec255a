/**
 * Serial lines of guests that are not there: a `ConsoleSource` in memory, with the guest's end in the test's hands.
 *
 * A line behaves like a VMM's socket: off until powered on; one client, the newest wins and the one before it sees its
 * end; what is printed while nobody is connected is lost, or kept where the line was told so; a client that half-closes
 * gets what is still on its way, and then its end. Bytes reach a client a piece at a time, so that one that lets go too
 * early loses some, as it would on a socket.
 */
import { Duplex } from 'node:stream';
import type { ConsoleSource, VmUid } from '@eitri/core/contracts';
import { KIB, MIB, retryable } from '@eitri/core/kit';

/** How the lines of a `FakeConsole` behave. */
export interface FakeLineOptions {
  /** What is printed while nobody is connected comes first at the next connection (at most 1 MiB, the oldest goes). */
  readonly keepsBacklog: boolean;
}

const PIECE_BYTES = 4 * KIB;
const BACKLOG_BYTES = MIB;

/** A `ConsoleSource` in memory, one line a guest. Opening a line that is off rejects, retryable. */
export class FakeConsole implements ConsoleSource {
  private readonly lines = new Map<VmUid, FakeLine>();

  constructor(private readonly options: FakeLineOptions = { keepsBacklog: false }) {}

  /** The guest's end; made off, at the first call for this uid. */
  line(uid: VmUid): FakeLine {
    const line = this.lines.get(uid) ?? new FakeLine(this.options);
    this.lines.set(uid, line);
    return line;
  }

  readonly open = async (uid: VmUid, signal: AbortSignal): Promise<Duplex> => {
    signal.throwIfAborted();
    await Promise.resolve();
    signal.throwIfAborted();
    return this.line(uid).connect();
  };
}

/** The guest's end of one line: power it, print on it, read what was typed. */
export class FakeLine {
  private on = false;
  private readonly clients = new Set<ClientEnd>();
  private newest: ClientEnd | undefined;
  private readonly typedChunks: Buffer[] = [];
  private backlog: Buffer = Buffer.alloc(0);
  private stalled: (() => void)[] | undefined;
  /** The most clients that were connected at once. */
  mostClients = 0;
  /** How many connections there were. */
  connections = 0;
  /** Clients that closed before they had read to their end: a socket would have been reset. */
  cutOff = 0;
  /** Clients that half-closed. */
  halfClosed = 0;

  constructor(private readonly options: FakeLineOptions) {}

  powerOn(): void {
    this.on = true;
  }

  /** The VMM ends: the client gets what is on its way, and its end. */
  gone(): void {
    this.on = false;
    this.newest?.closeByGuest();
  }

  /** The line closes, and is there again at once. */
  reboot(): void {
    this.newest?.closeByGuest();
  }

  print(bytes: Uint8Array | string): void {
    const chunk = Buffer.from(bytes);
    if (this.newest !== undefined) this.newest.deliver(chunk);
    else if (this.on && this.options.keepsBacklog) {
      const all = Buffer.concat([this.backlog, chunk]);
      this.backlog = all.subarray(Math.max(0, all.length - BACKLOG_BYTES));
    }
  }

  /** Everything that was typed. */
  typed(): Buffer {
    return Buffer.concat(this.typedChunks);
  }

  /** From now on the guest takes no input, until `takeInput`. */
  stallInput(): void {
    this.stalled ??= [];
  }

  takeInput(): void {
    const waiting = this.stalled ?? [];
    this.stalled = undefined;
    for (const go of waiting) go();
  }

  get connected(): number {
    return this.clients.size;
  }

  connect(): Duplex {
    if (!this.on) throw retryable('connect to the console: no such line');
    this.newest?.closeByGuest();
    const client = new ClientEnd({
      typed: (chunk, taken) => {
        this.typedChunks.push(chunk);
        if (this.stalled === undefined) taken();
        else this.stalled.push(taken);
      },
      halfClosed: () => {
        this.halfClosed++;
        if (this.newest === client) this.newest = undefined;
      },
      closing: () => {
        if (this.newest === client) this.newest = undefined;
      },
      left: (readToEnd) => {
        this.clients.delete(client);
        if (this.newest === client) this.newest = undefined;
        if (!readToEnd) this.cutOff++;
      },
    });
    this.newest = client;
    this.clients.add(client);
    this.connections++;
    this.mostClients = Math.max(this.mostClients, this.clients.size);
    client.deliver(this.backlog);
    this.backlog = Buffer.alloc(0);
    return client;
  }
}

interface ClientHooks {
  readonly typed: (chunk: Buffer, taken: () => void) => void;
  readonly halfClosed: () => void;
  readonly closing: () => void;
  readonly left: (readToEnd: boolean) => void;
}

/** A client's stream. */
class ClientEnd extends Duplex {
  private underway: Buffer[] = [];
  /** Index of the first piece of `underway` that was not read yet: `shift` on a long list costs its length. */
  private next = 0;
  private closing = false;
  private hungry = false;

  constructor(private readonly hooks: ClientHooks) {
    super({ highWaterMark: PIECE_BYTES });
  }

  deliver(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) this.underway.push(chunk.subarray(at, at + PIECE_BYTES));
    if (this.hungry) this.step();
  }

  closeByGuest(): void {
    this.closing = true;
    this.hooks.closing();
    if (this.hungry) this.step();
  }

  override _read(): void {
    this.hungry = true;
    // Not in the reader's own turn: bytes on a socket take their time.
    process.nextTick(() => {
      if (this.hungry) this.step();
    });
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.hooks.typed(Buffer.from(chunk), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (!this.closing) this.hooks.halfClosed();
    this.closing = true;
    if (this.hungry) this.step();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.underway = [];
    this.hooks.left(this.readableEnded);
    done(error);
  }

  private step(): void {
    const next = this.underway[this.next];
    if (next === undefined) {
      this.underway = [];
      this.next = 0;
      if (!this.closing) return;
    } else this.next++;
    this.hungry = false;
    this.push(next ?? null);
  }
}
