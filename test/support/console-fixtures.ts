/**
 * What tests of the console room share: a log that remembers, a disk with failure knobs, a reader that keeps what it read.
 */
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Clock, LogFields, Logger, VmUid } from '@eitri/core/contracts';
import type { LogFiles } from '../../src/console/log-file.js';

export const newUid = (): VmUid => randomUUID() as VmUid;

/** Remembers the events of all its children. */
export class MemoryLogger implements Logger {
  constructor(readonly events: { readonly event: string; readonly fields: LogFields }[] = []) {}

  private readonly note = (event: string, fields: LogFields = {}): void => {
    this.events.push({ event, fields });
  };
  readonly debug = this.note;
  readonly info = this.note;
  readonly warn = this.note;
  readonly error = this.note;
  readonly child = (): Logger => new MemoryLogger(this.events);

  count(event: string): number {
    return this.events.filter((one) => one.event === event).length;
  }
}

/** Real time, `speed` times as fast. */
export class FastClock implements Clock {
  constructor(private readonly speed: number) {}
  readonly now = (): number => Date.now();
  readonly monotonicMs = (): number => performance.now() * this.speed;
  readonly sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
      };
      // eslint-disable-next-line no-restricted-globals -- this is a clock: what sleeps by it is what is tried, not the test
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', leave);
        resolve();
      }, ms / this.speed);
      signal.addEventListener('abort', leave, { once: true });
    });
  };
}

/** A disk in memory: `full` refuses (after taking `takesBytes`), `hangs` never answers. */
export class MemoryLogFiles implements LogFiles {
  /** The files, in the pieces in which they were written. */
  private readonly pieces = new Map<string, Buffer[]>();
  full = false;
  takesBytes = 0;
  hangs = false;
  opened = 0;
  appends = 0;

  text(path: string): string {
    return this.content(path).toString('latin1');
  }

  readonly open: LogFiles['open'] = async (path) => {
    await this.turn();
    this.opened++;
    const before = this.content(path);
    const pieces = [before];
    this.pieces.set(path, pieces);
    return {
      sizeBytes: before.length,
      endsLine: before.length === 0 || before.at(-1) === 0x0a,
      append: async (bytes) => {
        await this.turn();
        this.appends++;
        if (this.full && this.takesBytes === 0) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
        const taken = this.full ? Math.min(this.takesBytes, bytes.length) : bytes.length;
        if (this.full) this.takesBytes -= taken;
        pieces.push(Buffer.from(bytes.subarray(0, taken)));
        return taken;
      },
      close: () => this.turn(),
    };
  };

  readonly rotate: LogFiles['rotate'] = async (path, limitBytes) => {
    await this.turn();
    this.pieces.set(`${path}.1`, [this.content(path).subarray(0, limitBytes)]);
    this.pieces.delete(path);
  };

  readonly readEnd: LogFiles['readEnd'] = async (path, maxBytes) => {
    await this.turn();
    const all = Buffer.concat([this.content(`${path}.1`), this.content(path)]);
    return all.subarray(Math.max(0, all.length - maxBytes));
  };

  private content(path: string): Buffer {
    return Buffer.concat(this.pieces.get(path) ?? []);
  }

  private async turn(): Promise<void> {
    if (this.hangs) await new Promise<void>(() => undefined);
    await Promise.resolve();
  }
}

/** Reads a stream all the time; keeps what it read, or only its length. */
export class Reader {
  private readonly chunks: Buffer[] = [];
  bytes = 0;
  ended = false;
  closed = false;

  constructor(stream: Readable, options: { readonly keep: boolean } = { keep: true }) {
    stream.on('data', (chunk: Buffer) => {
      if (options.keep) this.chunks.push(chunk);
      this.bytes += chunk.length;
    });
    stream.once('end', () => (this.ended = true));
    stream.once('close', () => (this.closed = true));
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }
}
