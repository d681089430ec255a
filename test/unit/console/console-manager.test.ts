import { PassThrough, type Duplex } from 'node:stream';
import { container } from 'tsyringe';
import { describe, expect, it } from 'vitest';
import { FakeConsole, ManualClock } from '@eitri/conformance';
import { CLOCK, CONSOLE_SOURCE, LOGGER, type ConsoleSource, type VmUid } from '@eitri/core/contracts';
import { KIB, MIB, permanent } from '@eitri/core/kit';
import { CONSOLE_OPTIONS, ConsoleManager } from '../../../src/console/index.js';
import type { PumpLimits } from '../../../src/console/pump.js';
import { MemoryLogFiles, MemoryLogger, newUid, Reader } from '../../support/console-fixtures.js';
import { until } from '../../support/until.js';

interface Given {
  readonly source?: ConsoleSource;
  readonly lines?: FakeConsole;
  readonly pumpLimits?: Partial<PumpLimits>;
  readonly files?: MemoryLogFiles;
}

function setUp(given: Given = {}) {
  const clock = new ManualClock(Date.UTC(2026, 6, 1, 12));
  const lines = given.lines ?? new FakeConsole();
  const files = given.files ?? new MemoryLogFiles();
  const logger = new MemoryLogger();
  const logPathOf = (uid: VmUid): string => `${uid}.log`;
  const options = { logPathOf, files, ...(given.pumpLimits === undefined ? {} : { pumpLimits: given.pumpLimits }) };
  const consoles = new ConsoleManager(given.source ?? lines, clock, logger, options);
  const uid = newUid();
  const line = lines.line(uid);
  /** Powers on, ensures, and lets the pump connect. */
  const boot = async (): Promise<void> => {
    line.powerOn();
    await consoles.ensure(uid);
    await clock.advance(50);
    expect(consoles.state(uid)).toBe('connected');
  };
  const print = async (text: string): Promise<void> => {
    line.print(text);
    await clock.advance(0);
  };
  const logged = (): string => files.text(logPathOf(uid));
  const nextAgent = (): ConsoleManager => new ConsoleManager(given.source ?? lines, clock, logger, options);
  /** The agent goes, and the next one finds the guest running. */
  const restart = async (): Promise<ConsoleManager> => {
    await whilePassing(clock, consoles.stopAll(1000));
    const next = nextAgent();
    await next.adopt(uid);
    await clock.advance(50);
    expect(next.state(uid)).toBe('connected');
    return next;
  };
  return { clock, lines, files, logger, consoles, uid, line, boot, print, logged, logPathOf, nextAgent, restart };
}

const LOOK = { write: false, force: false, backlog: true };
const TYPE = { write: true, force: false, backlog: true };

/** Waits for a promise while manual time passes. */
async function whilePassing<T>(clock: ManualClock, work: Promise<T>, stepMs = 100): Promise<T> {
  let over = false;
  const done = work.finally(() => (over = true));
  done.catch(() => undefined);
  await until(async () => {
    await clock.advance(stepMs);
    return over;
  });
  return await done;
}

describe('console viewers', () => {
  it('one comes late: it gets the history first, then what is printed, without a gap and without a double', async () => {
    const t = setUp();
    await t.boot();
    await t.print('boot text. ');
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    for (const word of ['one ', 'two ', 'three']) await t.print(word);
    expect(reader.text).toBe('boot text. one two three');
  });

  it('one comes very late: it gets the newest 256 KiB', async () => {
    const t = setUp();
    await t.boot();
    await t.print('a'.repeat(300 * KIB));
    await t.print('the end');
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    await t.clock.advance(0);
    expect(reader.bytes).toBe(256 * KIB);
    expect(reader.text.endsWith('aaathe end')).toBe(true);
  });

  it('one that wants no history gets only what is printed from now on', async () => {
    const t = setUp();
    await t.boot();
    await t.print('before');
    const reader = new Reader(t.consoles.attach(t.uid, { ...LOOK, backlog: false }).stream);
    await t.print('after');
    expect(reader.text).toBe('after');
  });

  it('the guest was stopped and started: the dead boot is in the log, and not shown as the living one', async () => {
    const t = setUp();
    await t.boot();
    await t.print('login of the dead boot: ');
    t.line.gone();
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    expect(t.consoles.state(t.uid)).toBe('none');
    await t.boot();
    await t.print('new boot');
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    await t.clock.advance(0);
    expect(reader.text).toBe('new boot');
    expect(t.logged()).toMatch(/^login of the dead boot: \n--- eitri: console opened at .* ---\nnew boot$/);
  });

  it('one of three never reads: it is dropped, told why, and the others and the log get everything', async () => {
    const t = setUp();
    await t.boot();
    const stuck = t.consoles.attach(t.uid, { ...LOOK, who: 'stuck' });
    const readers = [0, 1].map(() => new Reader(t.consoles.attach(t.uid, LOOK).stream));
    const chunk = 'x'.repeat(64 * KIB);
    for (let i = 0; i < 40; i++) await t.print(chunk);
    expect(await stuck.ended).toEqual({ reason: 'dropped' });
    expect(stuck.stream.destroyed).toBe(true);
    expect(readers.map((reader) => reader.bytes)).toEqual([40 * 64 * KIB, 40 * 64 * KIB]);
    expect(t.logged().length).toBe(40 * 64 * KIB);
    expect(t.logger.events.find((one) => one.event === 'console.viewer.dropped')?.fields).toMatchObject({
      who: 'stuck',
    });
  });

  it('one pauses and falls behind by less than a mebibyte: it stays, and misses nothing', async () => {
    const t = setUp();
    await t.boot();
    const viewer = t.consoles.attach(t.uid, LOOK);
    let expected = '';
    for (let i = 0; i < 15; i++) {
      const words = String.fromCharCode(0x61 + i).repeat(64 * KIB);
      expected += words;
      await t.print(words);
    }
    const reader = new Reader(viewer.stream);
    await until(() => reader.bytes === expected.length);
    expect(reader.text === expected).toBe(true);
    await t.print('and on');
    expect(reader.text.endsWith('and on')).toBe(true);
  });

  it('the guest is stopped: a viewer reads the last words, then the end, and is told', async () => {
    const t = setUp();
    await t.boot();
    const viewer = t.consoles.attach(t.uid, LOOK);
    const reader = new Reader(viewer.stream);
    t.line.print('reboot: Power down');
    t.line.gone();
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    expect(await viewer.ended).toEqual({ reason: 'stopped' });
    await until(() => reader.ended);
    expect(reader.text).toBe('reboot: Power down');
  });

  it('the guest is stopped while a viewer has not read yet: what it was given can still be read', async () => {
    const t = setUp();
    await t.boot();
    const viewer = t.consoles.attach(t.uid, LOOK);
    await t.print('a'.repeat(200 * KIB));
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    expect(await viewer.ended).toEqual({ reason: 'stopped' });
    const reader = new Reader(viewer.stream);
    await until(() => reader.ended);
    expect(reader.bytes).toBe(200 * KIB);
  });

  it('one leaves: it is told so itself, and nobody keeps output for it', async () => {
    const t = setUp();
    await t.boot();
    const viewer = t.consoles.attach(t.uid, LOOK);
    viewer.stream.destroy();
    expect(await viewer.ended).toEqual({ reason: 'closed' });
    for (let i = 0; i < 40; i++) await t.print('x'.repeat(64 * KIB));
    expect(t.logger.count('console.viewer.dropped')).toBe(0);
  });

  it('one fails: the others and the guest are not touched', async () => {
    const t = setUp();
    await t.boot();
    const viewer = t.consoles.attach(t.uid, TYPE);
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    viewer.stream.destroy(new Error('the terminal went away'));
    expect(await viewer.ended).toEqual({ reason: 'closed' });
    await t.print('goes on');
    expect(reader.text).toBe('goes on');
    t.consoles.attach(t.uid, TYPE);
  });

  it('there are as many as may be: the next one is refused with the number', async () => {
    const t = setUp({ pumpLimits: { viewers: 2 } });
    await t.boot();
    t.consoles.attach(t.uid, TYPE);
    const second = t.consoles.attach(t.uid, LOOK);
    expect(() => t.consoles.attach(t.uid, LOOK)).toThrow('2 viewers already');
    t.consoles.attach(t.uid, { ...TYPE, force: true });
    second.stream.destroy();
    t.consoles.attach(t.uid, LOOK);
  });

  it('the guest is off: attaching says so', () => {
    const t = setUp();
    expect(() => t.consoles.attach(t.uid, LOOK)).toThrow(`no console for ${t.uid}: the guest is not running`);
  });

  it('a guest prints three bytes at a time: a read costs the same, however full history, log and viewers are', async () => {
    const t = setUp();
    await t.boot();
    await t.print('x'.repeat(256 * KIB));
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    // Never reads, and so holds a full share.
    t.consoles.attach(t.uid, LOOK);
    const before = performance.now();
    for (let i = 0; i < 200_000; i++) t.line.print('abc');
    await until(() => reader.bytes === 256 * KIB + 600_000);
    // Work that grew with the history would be 200,000 × 256 KiB: a minute and more.
    expect(performance.now() - before).toBeLessThan(5000);
  });
});

describe('console history over a restart of the agent', () => {
  /** What somebody is shown who comes now. */
  const shown = async ({ clock, uid }: ReturnType<typeof setUp>, consoles: ConsoleManager): Promise<string> => {
    const reader = new Reader(consoles.attach(uid, LOOK).stream);
    await clock.advance(0);
    return reader.text;
  };

  it('the guest printed before: a viewer is shown that, where output may be missing, and what came since', async () => {
    const t = setUp();
    await t.boot();
    await t.print('before');
    const next = await t.restart();
    expect(await shown(t, next)).toMatch(
      /^before\n--- eitri: console reopened at .*, output in between may be missing ---\n$/,
    );
    await t.print('since');
    expect(await shown(t, next)).toMatch(/^before\n--- eitri: console reopened at [^\n]* ---\nsince$/);
  });

  it('the VMM keeps what nobody read: it is shown once, behind what was read before', async () => {
    const t = setUp({ lines: new FakeConsole({ keepsBacklog: true }) });
    await t.boot();
    await t.print('before ');
    await whilePassing(t.clock, t.consoles.stopAll(1000));
    t.line.print('meanwhile ');
    const next = t.nextAgent();
    await next.adopt(t.uid);
    await t.clock.advance(50);
    await t.print('since');
    const words = (await shown(t, next)).match(/before|meanwhile|since/g);
    expect(words).toEqual(['before', 'meanwhile', 'since']);
    expect(t.logged().match(/before|meanwhile|since/g)).toEqual(words);
  });

  it('the guest has booted twice: the boot before is not shown, also when this one has printed nothing yet', async () => {
    const t = setUp();
    await t.boot();
    await t.print('the boot before');
    t.line.gone();
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    await t.boot();
    expect(await shown(t, await t.restart())).toBe('');
  });

  it('the agent starts three times under one boot: all of it is shown', async () => {
    const t = setUp();
    await t.boot();
    await t.print('one ');
    const second = await t.restart();
    await t.print('two ');
    await whilePassing(t.clock, second.stopAll(1000));
    const third = t.nextAgent();
    await third.adopt(t.uid);
    await t.clock.advance(50);
    await t.print('three');
    expect((await shown(t, third)).match(/one|two|three/g)).toEqual(['one', 'two', 'three']);
  });

  it('the guest printed a mebibyte: the newest 256 KiB are shown', async () => {
    const t = setUp();
    await t.boot();
    await t.print('a'.repeat(MIB));
    const text = await shown(t, await t.restart());
    expect(text.length).toBe(256 * KIB);
    expect(text).toMatch(/^a+\n--- eitri: console reopened at .* ---\n$/);
  });

  it('the guest stops and boots under the new agent: its history is fresh', async () => {
    const t = setUp();
    await t.boot();
    await t.print('the boot before');
    const next = await t.restart();
    t.line.gone();
    await whilePassing(t.clock, next.stop(t.uid));
    t.line.powerOn();
    await next.ensure(t.uid);
    await t.clock.advance(50);
    await t.print('new boot');
    expect(await shown(t, next)).toBe('new boot');
  });

  it('the disk of the log does not answer: the console is read within a second all the same', async () => {
    const files = new MemoryLogFiles();
    const t = setUp({ files });
    t.line.powerOn();
    files.hangs = true;
    const adopted = t.consoles.adopt(t.uid);
    await t.clock.advance(1000);
    await adopted;
    await t.clock.advance(50);
    await t.print('heard');
    expect(await shown(t, t.consoles)).toBe('heard');
    expect(t.logger.count('console.log.slow')).toBe(1);
  });

  it('the log can not be read: the console is read all the same, and the agent’s log says so', async () => {
    const files = new MemoryLogFiles();
    const refused = Object.assign(files, { readEnd: () => Promise.reject(new Error('EIO')) });
    const t = setUp({ files: refused });
    t.line.powerOn();
    await t.consoles.adopt(t.uid);
    await t.clock.advance(50);
    await t.print('heard');
    expect(await shown(t, t.consoles)).toBe('heard');
    expect(t.logger.count('console.log.unreadable')).toBe(1);
  });

  it('it is adopted twice, or after it was ensured: one pump, and its history as it was', async () => {
    const t = setUp();
    await t.boot();
    await t.print('once');
    await t.consoles.adopt(t.uid);
    await t.consoles.adopt(t.uid);
    expect(await shown(t, t.consoles)).toBe('once');
    expect(t.line.mostClients).toBe(1);
  });
});

describe('console keyboard', () => {
  it('a second writer is refused with the name of the first and what to type', async () => {
    const t = setUp();
    await t.boot();
    t.consoles.attach(t.uid, { ...TYPE, who: 'anna on tty1' });
    expect(() => t.consoles.attach(t.uid, { ...TYPE, who: 'bert' })).toThrow(/anna on tty1.*--force/);
    t.consoles.attach(t.uid, LOOK);
  });

  it('by force it changes hands: the former is told by whom, and types no more', async () => {
    const t = setUp();
    await t.boot();
    const anna = t.consoles.attach(t.uid, { ...TYPE, who: 'anna' });
    const seenByAnna = new Reader(anna.stream);
    anna.stream.write('by anna;');
    await t.print('printed before');
    const bert = t.consoles.attach(t.uid, { ...TYPE, force: true, who: 'bert' });
    expect(await anna.ended).toEqual({ reason: 'taken over', by: 'bert' });
    anna.stream.write('too late;');
    bert.stream.write('by bert;');
    await until(() => seenByAnna.ended);
    expect(t.line.typed().toString()).toBe('by anna;by bert;');
    expect(seenByAnna.text).toBe('printed before');
    // The former's going must not take the keyboard from its new owner.
    anna.stream.end();
    await t.clock.advance(0);
    anna.stream.destroy();
    expect(() => t.consoles.attach(t.uid, TYPE)).toThrow(/bert/);
  });

  it('what a mere viewer writes is not typed', async () => {
    const t = setUp();
    await t.boot();
    const viewer = t.consoles.attach(t.uid, LOOK);
    viewer.stream.write('rm -rf /\n');
    await t.print('still there');
    expect(t.line.typed().length).toBe(0);
    expect(viewer.stream.destroyed).toBe(false);
  });

  it('a writer that types no more reads on, and the keyboard is free', async () => {
    const t = setUp();
    await t.boot();
    const first = t.consoles.attach(t.uid, TYPE);
    const reader = new Reader(first.stream);
    first.stream.end('reboot\r');
    await t.clock.advance(0);
    t.consoles.attach(t.uid, TYPE);
    await t.print('rebooting');
    expect(t.line.typed().toString()).toBe('reboot\r');
    expect(reader.text).toBe('rebooting');
  });

  it('a guest takes no input: its writer is made to wait, nothing is lost, and output goes on', async () => {
    const t = setUp();
    await t.boot();
    t.line.stallInput();
    const writer = t.consoles.attach(t.uid, TYPE);
    const reader = new Reader(writer.stream);
    const source = new PassThrough();
    source.pipe(writer.stream);
    const typed = Buffer.from(Array.from({ length: 400 * KIB }, (_, i) => i % 256));
    for (let at = 0; at < typed.length; at += 4 * KIB) source.write(typed.subarray(at, at + 4 * KIB));
    await t.print('output goes on');
    expect(reader.text).toBe('output goes on');
    expect(t.line.typed().length).toBeLessThan(64 * KIB);
    expect(source.readableLength + source.writableLength).toBeGreaterThan(200 * KIB);
    t.line.takeInput();
    await until(() => t.line.typed().length === typed.length);
    expect(typed.equals(t.line.typed())).toBe(true);
  });

  it('typed before the line is there, it is typed once it is', async () => {
    const t = setUp();
    await t.consoles.ensure(t.uid);
    const writer = t.consoles.attach(t.uid, TYPE);
    writer.stream.write('ready ');
    writer.stream.write('when you are');
    await t.clock.advance(100);
    expect(t.consoles.state(t.uid)).toBe('connecting');
    t.line.powerOn();
    await t.clock.advance(1000);
    expect(t.line.typed().toString()).toBe('ready when you are');
  });

  it('typed by one who was taken over before the line came, it is never typed', async () => {
    const t = setUp();
    await t.consoles.ensure(t.uid);
    t.consoles.attach(t.uid, TYPE).stream.write('halt -f\r');
    t.consoles.attach(t.uid, { ...TYPE, force: true }).stream.write('uptime\r');
    t.line.powerOn();
    await t.clock.advance(1000);
    expect(t.line.typed().toString()).toBe('uptime\r');
  });
});

describe('console pump', () => {
  it('the line is not there: it is asked for again at growing distances, never less than once a second, until it is', async () => {
    const lines = new FakeConsole();
    let opens = 0;
    const source: ConsoleSource = {
      open: (uid, signal) => {
        opens++;
        return lines.open(uid, signal);
      },
    };
    const t = setUp({ source, lines });
    await t.consoles.ensure(t.uid);
    await t.clock.advance(60_000);
    expect(opens).toBeGreaterThan(58);
    expect(opens).toBeLessThan(75);
    t.line.powerOn();
    await t.clock.advance(1000);
    expect(t.consoles.state(t.uid)).toBe('connected');
  });

  it('the guest reboots: the line is back within 50 ms, the log says where output may be missing, viewers stay', async () => {
    const t = setUp();
    await t.boot();
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    await t.clock.advance(60_000);
    await t.print('going down');
    t.line.reboot();
    await t.clock.advance(50);
    await t.print('up again');
    expect(t.line.connections).toBe(2);
    expect(t.logged()).toBe(
      'going down\n--- eitri: console reconnected at 2026-07-01T12:01:00.070Z, output in between may be missing ---\nup again',
    );
    expect(reader.text).toBe('going downup again');
  });

  it('the VMM keeps what nobody read: after a reconnection it is in history and log once', async () => {
    const t = setUp({ lines: new FakeConsole({ keepsBacklog: true }) });
    t.line.powerOn();
    t.line.print('before anybody came. ');
    await t.boot();
    await t.print('connected. ');
    t.line.reboot();
    t.line.print('while away. ');
    await t.clock.advance(1000);
    await t.print('back.');
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    await t.clock.advance(0);
    expect(reader.text).toBe('before anybody came. connected. while away. back.');
    expect(t.logged().replace(/\n--- eitri: .* ---\n/, '')).toBe(reader.text);
  });

  it('a line that closes as soon as it opens: neither the line nor the log is flooded', async () => {
    const lines = new FakeConsole();
    const source: ConsoleSource = {
      open: async (uid, signal) => {
        const stream = await lines.open(uid, signal);
        lines.line(uid).reboot();
        return stream;
      },
    };
    const t = setUp({ source, lines });
    t.line.powerOn();
    await t.consoles.ensure(t.uid);
    await t.clock.advance(60_000);
    expect(t.line.connections).toBeLessThan(75);
    expect(t.logged()).toBe('');
  });

  it('the agent starts anew beside a running guest: the log goes on, says so, and doubles nothing', async () => {
    const first = setUp();
    await first.boot();
    await first.print('seen by the first agent');
    await whilePassing(first.clock, first.consoles.stopAll(1000));
    first.line.print('seen by nobody');
    const second = first.nextAgent();
    await second.adopt(first.uid);
    await first.clock.advance(50);
    await first.print('seen by the second');
    expect(first.logged()).toMatch(
      /^seen by the first agent\n--- eitri: console reopened at .*, output in between may be missing ---\nseen by the second$/,
    );
  });

  it('a VMM that does not close after the half-close: stop gives up after two seconds', async () => {
    const silent = new PassThrough();
    const deaf: Duplex = silent;
    deaf.end = () => deaf;
    const t = setUp({ source: { open: () => Promise.resolve(deaf) } });
    await t.consoles.ensure(t.uid);
    await t.clock.advance(10);
    let stopped = false;
    const stop = t.consoles.stop(t.uid).then(() => (stopped = true));
    await t.clock.advance(1999);
    expect(stopped).toBe(false);
    await t.clock.advance(1);
    await stop;
    expect(deaf.destroyed).toBe(true);
    expect(t.logger.count('console.drain.unfinished')).toBe(1);
  });

  it('a source that heeds no signal: stop resolves, and a line that opens after all is let go in good order', async () => {
    const lines = new FakeConsole();
    let answer: (stream: Duplex) => void = () => undefined;
    const source: ConsoleSource = { open: () => new Promise((resolve) => (answer = resolve)) };
    const t = setUp({ source, lines });
    t.line.powerOn();
    await t.consoles.ensure(t.uid);
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    const late = await lines.open(t.uid, new AbortController().signal);
    t.line.print('y'.repeat(64 * KIB));
    answer(late);
    await t.clock.advance(100);
    expect(t.line.connected).toBe(0);
    expect(t.line.cutOff).toBe(0);
    expect(t.line.halfClosed).toBe(1);
  });

  it('stop comes in any moment of the opening: the line is let go in good order, and no time is waited out', async () => {
    for (let moment = -8; moment <= 8; moment++) {
      const lines = new FakeConsole();
      let answer: (stream: Duplex) => void = () => undefined;
      const t = setUp({ lines, source: { open: () => new Promise((resolve) => (answer = resolve)) } });
      t.line.powerOn();
      await t.consoles.ensure(t.uid);
      const stream = await lines.open(t.uid, new AbortController().signal);
      t.line.print('on its way');
      // Before zero the line opens first, after it the stop comes first; so many turns lie between the two.
      if (moment < 0) answer(stream);
      for (let i = moment; i < 0; i++) await Promise.resolve();
      const stop = t.consoles.stop(t.uid);
      for (let i = 0; i < moment; i++) await Promise.resolve();
      answer(stream);
      await whilePassing(t.clock, stop, 10);
      await t.clock.advance(10);
      expect({ moment, left: t.line.connected, cutOff: t.line.cutOff }).toEqual({ moment, left: 0, cutOff: 0 });
      expect(t.logger.count('console.drain.unfinished')).toBe(0);
    }
  });

  it('a source that fails for good: ensure resolves all the same, and the guest is asked for again', async () => {
    let opens = 0;
    const source: ConsoleSource = {
      open: () => {
        opens++;
        return Promise.reject(permanent('no console on this backend'));
      },
    };
    const t = setUp({ source });
    await t.consoles.ensure(t.uid);
    await t.clock.advance(5000);
    expect(opens).toBeGreaterThan(3);
    expect(t.consoles.state(t.uid)).toBe('connecting');
    await whilePassing(t.clock, t.consoles.stop(t.uid));
  });

  it('stopping leaves no sleeper behind', async () => {
    const t = setUp();
    await t.boot();
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    expect(t.clock.sleeping).toBe(0);
  });

  it('a disk that takes nothing: guest and viewers go on as if nothing were', async () => {
    const files = new MemoryLogFiles();
    files.hangs = true;
    const t = setUp({ files });
    await t.boot();
    const reader = new Reader(t.consoles.attach(t.uid, LOOK).stream);
    for (let i = 0; i < 64; i++) await t.print('z'.repeat(64 * KIB));
    expect(reader.bytes).toBe(4 * MIB);
    await whilePassing(t.clock, t.consoles.stop(t.uid));
  });
});

describe('console manager', () => {
  it('the tail is that of this boot while the guest runs, and that of the log when it does not', async () => {
    const t = setUp();
    expect((await t.consoles.tail(t.uid, 100)).toString()).toBe('');
    await t.boot();
    await t.print('kernel panic: not syncing');
    expect((await t.consoles.tail(t.uid, 11)).toString()).toBe('not syncing');
    await whilePassing(t.clock, t.consoles.stop(t.uid));
    expect((await t.consoles.tail(t.uid, 11)).toString()).toBe('not syncing');
  });

  it('the agent leaves: all viewers are told, all lines are let go in good order, and none is opened again', async () => {
    const t = setUp();
    const other = newUid();
    await t.boot();
    t.lines.line(other).powerOn();
    await t.consoles.ensure(other);
    await t.clock.advance(50);
    const viewers = [t.uid, other].map((uid) => t.consoles.attach(uid, LOOK));
    t.line.print('x'.repeat(100 * KIB));
    await whilePassing(t.clock, t.consoles.stopAll(3000));
    expect(await Promise.all(viewers.map((viewer) => viewer.ended))).toEqual([
      { reason: 'stopped' },
      { reason: 'stopped' },
    ]);
    expect(t.logged().length).toBe(100 * KIB);
    for (const uid of [t.uid, other]) {
      await t.consoles.ensure(uid);
      await t.clock.advance(5000);
      expect(t.lines.line(uid).connected).toBe(0);
      expect(t.lines.line(uid).cutOff).toBe(0);
      expect(t.consoles.state(uid)).toBe('none');
    }
  });

  it('the agent leaves over lines and disks that hang: it is away at its deadline', async () => {
    const files = new MemoryLogFiles();
    files.hangs = true;
    const source: ConsoleSource = {
      open: () => {
        const stream = new PassThrough();
        stream.end = () => stream;
        stream.push('something to log');
        return Promise.resolve(stream);
      },
    };
    const t = setUp({ source, files });
    for (let i = 0; i < 20; i++) await t.consoles.ensure(newUid());
    await t.clock.advance(10);
    let left = false;
    const leave = t.consoles.stopAll(3000).then(() => (left = true));
    await t.clock.advance(2900);
    expect(left).toBe(false);
    await t.clock.advance(100);
    await leave;
  });

  it('is built by a container from its tokens', async () => {
    const child = container.createChildContainer();
    const lines = new FakeConsole();
    child.register(CONSOLE_SOURCE, { useValue: lines });
    child.register(CLOCK, { useValue: new ManualClock() });
    child.register(LOGGER, { useValue: new MemoryLogger() });
    child.register(CONSOLE_OPTIONS, { useValue: { logPathOf: () => 'log', files: new MemoryLogFiles() } });
    const uid = newUid();
    const consoles = child.resolve(ConsoleManager);
    await consoles.ensure(uid);
    expect(consoles.state(uid)).toBe('connecting');
    await consoles.stop(uid);
  });
});
