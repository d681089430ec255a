/**
 * The viewer's side of a console: output out of frames, typed bytes as they are.
 */
import { Readable } from 'node:stream';
import type { Duplex } from 'node:stream';
import { ConsoleFrameDecoder, consoleEndSchema, type ConsoleEndView } from '@eitri/protocol';

/** `lost`: the connection broke before the agent said why. */
export type SessionEnd = ConsoleEndView | { readonly reason: 'lost' };

export class ConsoleSession {
  /** What the guest prints; ends with the session, and never fails. */
  readonly output: Readable;
  /** Resolves once the session is over, after the last output. */
  readonly ended: Promise<SessionEnd>;
  private readonly decoder = new ConsoleFrameDecoder();
  private over = false;
  private tell: (end: SessionEnd) => void = () => undefined;

  constructor(
    private readonly socket: Duplex,
    head: Buffer,
  ) {
    this.ended = new Promise((resolve) => (this.tell = resolve));
    this.output = new Readable({
      read: () => {
        socket.resume();
      },
      destroy: (error, done) => {
        socket.destroy();
        done(error);
      },
    });
    socket.on('data', (chunk: Buffer) => {
      this.take(chunk);
    });
    socket.once('end', () => {
      this.finish({ reason: 'lost' });
    });
    socket.once('error', () => {
      this.finish({ reason: 'lost' });
    });
    socket.once('close', () => {
      this.finish({ reason: 'lost' });
    });
    if (head.length > 0) this.take(head);
  }

  /** Types. Resolves once the agent's connection took it, so that a big paste waits for a slow guest. */
  readonly type = (bytes: Uint8Array): Promise<void> =>
    new Promise((resolve) => {
      if (this.socket.writableEnded || this.socket.destroyed) resolve();
      // Whether it arrived is the end's to tell; a broken connection ends the session.
      else this.socket.write(bytes, () => resolve());
    });

  /** No more is typed; output goes on. */
  readonly endTyping = (): void => {
    this.socket.end();
  };

  /** Leaves. */
  readonly leave = (): void => {
    this.finish({ reason: 'closed' });
    this.socket.destroy();
  };

  private take(chunk: Buffer): void {
    try {
      for (const frame of this.decoder.decode(chunk)) {
        if (this.over) return;
        if (frame.kind === 'end') this.finish(consoleEndSchema.parse(JSON.parse(frame.json)));
        else if (!this.output.push(frame.bytes)) this.socket.pause();
      }
    } catch {
      this.finish({ reason: 'lost' });
      this.socket.destroy();
    }
  }

  private finish(end: SessionEnd): void {
    if (this.over) return;
    this.over = true;
    this.output.push(null);
    this.tell(end);
    this.socket.end();
    this.socket.resume();
  }
}
