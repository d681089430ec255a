/**
 * One viewer's end of a guest's console: what the guest prints comes out, what is written is typed.
 *
 * Owns the viewer's share of output, bounded by `lagBytes`: a viewer that falls further behind is dropped, so that it
 * costs the guest, the log and the other viewers nothing. States: open → over (one reason, told once by `ended`). A
 * viewer that is stopped or taken over still reads what was meant for it, to the end of its stream; a dropped one is cut.
 */
import { Duplex } from 'node:stream';
import type { ConsoleEnd, ConsoleSession } from '@eitri/core/contracts';
import { KIB } from '@eitri/core/kit';
import { ByteRing } from './byte-ring.js';

/** What a viewer types: `done` asks for more; a chunk that is no longer `wanted` when its turn comes is not typed. */
export interface Typing {
  readonly chunk: Buffer;
  readonly wanted: () => boolean;
  readonly done: () => void;
}

export interface ViewerParts {
  /** History that it is given first. */
  readonly backlog: Buffer;
  readonly lagBytes: number;
  /** Absent: what it writes is let go, as on a terminal whose keyboard is not connected. */
  readonly type?: (typing: Typing) => void;
  /** It will type no more. May be called more than once. */
  readonly onTyped: () => void;
  readonly onOver: (end: ConsoleEnd) => void;
}

const READ_BYTES = 64 * KIB;

export class ViewerStream extends Duplex implements ConsoleSession {
  readonly stream: Duplex = this;
  readonly ended: Promise<ConsoleEnd>;
  private readonly queue: ByteRing;
  private backlog: Buffer | undefined;
  /** The reader asked and got nothing yet: the next bytes go to it without a copy. */
  private hungry = false;
  private over = false;
  private tell: (end: ConsoleEnd) => void = () => undefined;

  constructor(private readonly parts: ViewerParts) {
    super({ readableHighWaterMark: READ_BYTES });
    this.queue = new ByteRing(parts.lagBytes);
    this.backlog = parts.backlog.length > 0 ? parts.backlog : undefined;
    this.ended = new Promise((resolve) => (this.tell = resolve));
    // Without a listener one failed viewer would end the agent; its reason is told by `ended`.
    this.on('error', () => undefined);
  }

  /** Gives it what the guest printed; drops it if it is too far behind. */
  feed(chunk: Buffer): void {
    if (this.over) return;
    if (this.hungry) {
      this.hungry = false;
      this.push(chunk);
    } else if (chunk.length <= this.queue.room) {
      this.queue.push(chunk);
    } else {
      this.settle({ reason: 'dropped' });
      this.destroy();
    }
  }

  /** Ends it in good order: what it was given before can still be read. */
  finish(end: ConsoleEnd): void {
    if (!this.settle(end)) return;
    if (this.hungry) this.push(null);
  }

  override _read(): void {
    const next = this.backlog ?? (this.queue.length > 0 ? this.queue.take(READ_BYTES) : undefined);
    this.backlog = undefined;
    if (next !== undefined) this.push(next);
    else if (this.over) this.push(null);
    else this.hungry = true;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.over || this.parts.type === undefined) {
      done();
      return;
    }
    this.parts.type({ chunk, wanted: () => !this.over, done });
  }

  /** It types no more, and goes on reading: `echo reboot |` into a console still shows what comes of it. */
  override _final(done: (error?: Error | null) => void): void {
    this.parts.onTyped();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.queue.clear();
    this.backlog = undefined;
    this.settle({ reason: 'closed' });
    done(error);
  }

  private settle(end: ConsoleEnd): boolean {
    if (this.over) return false;
    this.over = true;
    this.parts.onTyped();
    this.parts.onOver(end);
    this.tell(end);
    return true;
  }
}
