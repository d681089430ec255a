/**
 * What every `ConsoleSource` promises, tried over a guest whose end of the line is in the suite's hands.
 *
 * Run it from a test file: `consoleSourceSuite('console source: mine', makeContext)`. A case runs by itself with
 * `runCase`.
 */
import { strict as assert } from 'node:assert';
import type { Duplex } from 'node:stream';
import type { ConsoleSource, VmUid } from '@eitri/core/contracts';
import { isPermanent, KIB } from '@eitri/core/kit';
import { eventually, pause, within } from './patience.js';
import { registerSuite, type SuiteCase, type SuiteOptions } from './suite.js';

/** A guest that runs, as seen from inside. */
export interface ConsoleGuest {
  readonly uid: VmUid;
  /** Prints on the serial line; resolves when the bytes have left the guest. */
  readonly print: (bytes: Uint8Array) => Promise<void>;
  /** Everything that was typed on the line since it was made. */
  readonly typed: () => Uint8Array;
  /** Resets the guest; what the VMM then does to the line, it does here. Resolves when the guest is up again. */
  readonly reboot: () => Promise<void>;
  /** Ends the VMM. */
  readonly gone: () => Promise<void>;
}

/** What one case of the suite is given: the source under test, and guests to try it on. */
export interface ConsoleSourceContext {
  readonly source: ConsoleSource;
  /** A running guest of its own, at each call. */
  readonly newGuest: () => Promise<ConsoleGuest>;
}

const SAME = 'bytes read are what the guest printed, bytes written are typed';
const AGAIN = 'Called again after an end of stream, with backoff, until the pump is stopped';
const SIGNAL = 'The signal bounds the connecting, and not the stream';
const NOT_THERE = 'Rejects, retryable, while the line is not there';
const HALF_CLOSE = 'The caller half-closes with `end()` and reads on to the end of the stream before it destroys it';

const NEVER = new AbortController().signal;
const TEN = Array.from({ length: 10 }, (_, i) => i + 1);

/** Every promise of `ConsoleSource` as a case; `consoleSourceSuite` registers them. */
export const consoleSourceCases: readonly SuiteCase<ConsoleSourceContext>[] = [
  {
    name: 'a guest prints every byte value in small pieces: all arrive, in order',
    promise: SAME,
    run: async (context) => {
      const guest = await context.newGuest();
      const line = await openLine(context, guest);
      const printed = everyByte(32);
      for (let at = 0; at < printed.length; at += 7) await guest.print(printed.subarray(at, at + 7));
      await line.reads(printed);
      await line.letGo();
    },
  },
  {
    name: 'a guest prints 256 KiB at once: all of it arrives',
    promise: SAME,
    run: async (context) => {
      const guest = await context.newGuest();
      const line = await openLine(context, guest);
      const printed = everyByte((256 * KIB) / 256);
      await guest.print(printed);
      await line.reads(printed);
      await line.letGo();
    },
  },
  {
    name: 'every byte value is written: the guest gets all, in order',
    promise: SAME,
    run: async (context) => {
      const guest = await context.newGuest();
      const line = await openLine(context, guest);
      const written = everyByte(4);
      line.stream.write(written);
      await eventually(
        () => guest.typed().length >= written.length,
        () => pause(5),
        () => `the guest got ${guest.typed().length} of ${written.length} bytes`,
      );
      assert.ok(written.equals(guest.typed()), 'the guest got other bytes than were written');
      await line.letGo();
    },
  },
  {
    name: 'the signal is aborted already: opening rejects, ten times',
    promise: SIGNAL,
    run: async (context) => {
      const guest = await context.newGuest();
      for (const round of TEN) {
        const opening = context.source.open(guest.uid, AbortSignal.abort(new Error('not wanted any more')));
        await assert.rejects(within(opening, 'a rejection'), `round ${round}: it opened a line that nobody wants`);
      }
    },
  },
  {
    name: 'the signal is aborted once the line is open: both directions go on',
    promise: SIGNAL,
    run: async (context) => {
      const guest = await context.newGuest();
      const bound = new AbortController();
      const line = new Line(await within(context.source.open(guest.uid, bound.signal), 'the line opens'));
      bound.abort(new Error('connected: the bound is over'));
      // A stream that was tied to the signal is closed by now, or at once.
      await pause(20);
      await guest.print(Buffer.from('still printed'));
      await line.reads(Buffer.from('still printed'));
      line.stream.write('still typed');
      await eventually(
        () => Buffer.from(guest.typed()).toString().includes('still typed'),
        () => pause(5),
        () => 'what was typed after the abort reaches the guest',
      );
      await line.letGo();
    },
  },
  {
    name: 'the guest is gone: opening rejects, ten times, and never as permanent',
    promise: NOT_THERE,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.gone();
      for (const round of TEN) {
        const error = await within(
          context.source.open(guest.uid, NEVER).then(
            (stream) => {
              stream.on('error', () => undefined).destroy();
              return undefined;
            },
            (reason: unknown) => ({ reason }),
          ),
          'a rejection',
        );
        assert.ok(error !== undefined, `round ${round}: it resolved with a line that leads nowhere`);
        assert.ok(!isPermanent(error.reason), `round ${round}: permanent, so nobody would look for the line again`);
      }
    },
  },
  {
    name: 'the guest goes while its line is open: what it printed last is read, and the stream ends',
    promise: AGAIN,
    run: async (context) => {
      const guest = await context.newGuest();
      const line = await openLine(context, guest);
      await guest.print(Buffer.from('reboot: Power down'));
      await line.reads(Buffer.from('reboot: Power down'));
      await guest.gone();
      await within(line.over, 'the stream ends with its guest');
    },
  },
  {
    name: 'the guest reboots: the line is there again, and carries what is printed then, once',
    promise: AGAIN,
    run: async (context) => {
      const guest = await context.newGuest();
      const seen: Buffer[] = [];
      let line = await openLine(context, guest, seen);
      await guest.print(Buffer.from('first boot.'));
      await line.reads(Buffer.from('first boot.'));
      await guest.reboot();
      // Some VMMs keep the line over a reset. Then it goes on as it is.
      await pause(50);
      if (line.isOver) line = await openLine(context, guest, seen);
      await guest.print(Buffer.from('second boot.'));
      await line.reads(Buffer.from('first boot.second boot.'));
      await line.letGo();
    },
  },
  {
    name: 'the caller half-closes: what was printed before is read, and the stream comes to its end',
    promise: HALF_CLOSE,
    run: async (context) => {
      const guest = await context.newGuest();
      const stream = await openStream(context, guest);
      const printed = everyByte(128);
      await guest.print(printed);
      stream.end();
      const line = new Line(stream);
      await within(line.over, 'the end of a half-closed stream');
      assert.ok(line.sawEnd, 'it was closed under its reader, before its end was read');
      assert.ok(printed.equals(line.bytes), `${line.bytes.length} of ${printed.length} bytes were left to read`);
    },
  },
  {
    name: 'the line is opened and let go ten times: it works each time',
    promise: AGAIN,
    run: async (context) => {
      const guest = await context.newGuest();
      for (const round of TEN) {
        const line = await openLine(context, guest);
        const words = Buffer.from(`round ${round}.`);
        await guest.print(words);
        await line.reads(words);
        await line.letGo();
      }
    },
  },
  {
    name: 'two guests print: each line carries its own guest, and types to it',
    promise: "Connects to the guest's serial line",
    run: async (context) => {
      const guests = [await context.newGuest(), await context.newGuest()] as const;
      const lines = [await openLine(context, guests[0]), await openLine(context, guests[1])] as const;
      await guests[0].print(Buffer.from('I am one.'));
      await guests[1].print(Buffer.from('I am two.'));
      await lines[0].reads(Buffer.from('I am one.'));
      await lines[1].reads(Buffer.from('I am two.'));
      lines[0].stream.write('to one');
      await eventually(
        () => Buffer.from(guests[0].typed()).toString() === 'to one',
        () => pause(5),
        () => `the first guest got "${Buffer.from(guests[0].typed()).toString()}"`,
      );
      assert.equal(guests[1].typed().length, 0, 'the second guest got what was typed to the first');
      for (const line of lines) await line.letGo();
    },
  },
];

/** Registers the suite in the vitest that is collecting. */
export function consoleSourceSuite<C extends ConsoleSourceContext>(
  name: string,
  makeContext: () => C | Promise<C>,
  options: SuiteOptions<C> = {},
): void {
  registerSuite<C>(name, consoleSourceCases, makeContext, options);
}

/** A stream with what was read of it. */
class Line {
  /** The stream ended, failed or closed. */
  readonly over: Promise<void>;
  isOver = false;
  sawEnd = false;

  constructor(
    readonly stream: Duplex,
    private readonly seen: Buffer[] = [],
  ) {
    this.over = new Promise((resolve) => {
      const end = (): void => {
        this.isOver = true;
        stream.destroy();
        resolve();
      };
      stream.on('data', (chunk: Buffer) => seen.push(chunk));
      stream.once('end', () => {
        this.sawEnd = true;
        end();
      });
      stream.once('error', end);
      stream.once('close', end);
    });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.seen);
  }

  /** Waits until as many bytes are there, and holds them against what was printed. */
  async reads(expected: Buffer): Promise<void> {
    const count = (): number => this.seen.reduce((sum, chunk) => sum + chunk.length, 0);
    await eventually(
      () => count() >= expected.length,
      () => pause(5),
      () => `${expected.length} bytes to read, there are ${count()}`,
    );
    assert.ok(expected.equals(this.bytes), 'other bytes were read than were printed');
  }

  async letGo(): Promise<void> {
    this.stream.end();
    await within(this.over, 'the end of a half-closed stream');
  }
}

async function openStream(context: ConsoleSourceContext, guest: ConsoleGuest): Promise<Duplex> {
  let stream: Duplex | undefined;
  let last: unknown;
  await eventually(
    async () => {
      try {
        stream = await within(context.source.open(guest.uid, NEVER), 'an answer to open');
      } catch (error) {
        last = error;
      }
      return stream !== undefined;
    },
    () => pause(10),
    () => `the line of a running guest opens; last: ${String(last)}`,
  );
  assert.ok(stream !== undefined);
  return stream;
}

async function openLine(context: ConsoleSourceContext, guest: ConsoleGuest, seen?: Buffer[]): Promise<Line> {
  return new Line(await openStream(context, guest), seen);
}

function everyByte(times: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: 256 * times }, (_, i) => (i + Math.floor(i / 256)) % 256));
}
