/**
 * Console sources that each break one promise, over an honest one: they show that the suite would notice.
 */
import { Duplex, PassThrough, Transform } from 'node:stream';
import type { ConsoleSource, VmUid } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';

/** A promise of `ConsoleSource`, and the way in which it is broken. */
export type ConsoleSourceFault =
  | 'reads text'
  | 'loses much output'
  | 'types text'
  | 'ignores its signal'
  | 'ties the stream to its signal'
  | 'opens a line that leads nowhere'
  | 'gives up for good'
  | 'hides the end'
  | 'opens once only'
  | 'replays history'
  | 'cuts off at half-close'
  | 'has one line for all';

/** Every fault, for a test that goes through all of them. */
export const consoleSourceFaults: readonly ConsoleSourceFault[] = [
  'reads text',
  'loses much output',
  'types text',
  'ignores its signal',
  'ties the stream to its signal',
  'opens a line that leads nowhere',
  'gives up for good',
  'hides the end',
  'opens once only',
  'replays history',
  'cuts off at half-close',
  'has one line for all',
];

const NEVER = new AbortController().signal;

/** An honest source with one fault, or with none: the suite must fail with each, and pass without. */
export class FaultyConsoleSource implements ConsoleSource {
  private firstUid: VmUid | undefined;
  private readonly opened = new Map<VmUid, Duplex>();
  private readonly history = new Map<VmUid, Buffer[]>();

  constructor(
    private readonly inner: ConsoleSource,
    private readonly fault: ConsoleSourceFault | undefined,
  ) {}

  readonly open = async (uid: VmUid, signal: AbortSignal): Promise<Duplex> => {
    const { inner } = this;
    switch (this.fault) {
      case undefined:
        return await inner.open(uid, signal);
      case 'reads text':
        return overlaid(await inner.open(uid, signal), {
          read: new Transform({
            transform: (chunk: Buffer, _encoding, done) => {
              done(null, Buffer.from(chunk.toString('utf8')));
            },
          }),
        });
      case 'loses much output': {
        let seen = 0;
        return overlaid(await inner.open(uid, signal), {
          read: new Transform({
            transform: (chunk: Buffer, _encoding, done) => {
              seen += chunk.length;
              done(null, seen > 100_000 ? Buffer.alloc(0) : chunk);
            },
          }),
        });
      }
      case 'types text':
        return overlaid(await inner.open(uid, signal), {
          write: new Transform({
            transform: (chunk: Buffer, _encoding, done) => {
              done(null, Buffer.from(chunk.toString('ascii').replaceAll('\r\n', '\n')));
            },
          }),
        });
      case 'ignores its signal':
        return await inner.open(uid, NEVER);
      case 'ties the stream to its signal': {
        const stream = await inner.open(uid, signal);
        signal.addEventListener('abort', () => stream.destroy(), { once: true });
        return stream;
      }
      case 'opens a line that leads nowhere':
        return await inner.open(uid, signal).catch((error: unknown) => {
          if (signal.aborted) throw error;
          return new PassThrough();
        });
      case 'gives up for good':
        return await inner.open(uid, signal).catch((cause: unknown) => {
          throw permanent('open the console', { cause });
        });
      case 'hides the end':
        return withoutEnd(await inner.open(uid, signal));
      case 'opens once only': {
        signal.throwIfAborted();
        const before = this.opened.get(uid);
        if (before !== undefined) return before;
        const stream = await inner.open(uid, signal);
        this.opened.set(uid, stream);
        return stream;
      }
      case 'replays history': {
        const stream = await inner.open(uid, signal);
        const history = this.history.get(uid) ?? [];
        this.history.set(uid, history);
        const replayed = Buffer.concat(history);
        const read = new PassThrough();
        if (replayed.length > 0) read.write(replayed);
        stream.on('data', (chunk: Buffer) => history.push(chunk));
        return overlaid(stream, { read });
      }
      case 'cuts off at half-close': {
        const stream = await inner.open(uid, signal);
        stream.once('finish', () => stream.destroy());
        return stream;
      }
      case 'has one line for all':
        this.firstUid ??= uid;
        return await inner.open(this.firstUid, signal);
    }
  };
}

/** A stream whose bytes pass through others on their way. */
function overlaid(inner: Duplex, over: { readonly read?: Duplex; readonly write?: Duplex }): Duplex {
  const read = over.read ?? new PassThrough();
  const write = over.write ?? new PassThrough();
  inner.pipe(read);
  write.pipe(inner);
  const outer = Duplex.from({ readable: read, writable: write });
  outer.once('close', () => inner.destroy());
  return outer;
}

/** A stream that never says that it ended. */
function withoutEnd(inner: Duplex): Duplex {
  const outer: Duplex = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, encoding, done) => {
      inner.write(chunk, encoding, done);
    },
    final: (done) => {
      inner.end();
      done();
    },
  });
  inner.on('data', (chunk: Buffer) => outer.push(chunk));
  return outer;
}
