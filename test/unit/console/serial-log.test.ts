import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '@eitri/conformance';
import { KIB, MIB } from '@eitri/core/kit';
import { nodeLogFiles, type LogFiles } from '../../../src/console/log-file.js';
import { SERIAL_LOG_LIMITS, SerialLog, type SerialLogLimits } from '../../../src/console/serial-log.js';
import { FastClock, MemoryLogFiles, MemoryLogger } from '../../support/console-fixtures.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const realLog = (path: string, limits: SerialLogLimits = SERIAL_LOG_LIMITS): SerialLog =>
  new SerialLog(path, { files: nodeLogFiles, clock: new FastClock(1), logger: new MemoryLogger() }, limits);

function memoryLog(files: LogFiles, limits: Partial<SerialLogLimits> = {}) {
  const clock = new ManualClock();
  const logger = new MemoryLogger();
  const log = new SerialLog('log', { files, clock, logger }, { ...SERIAL_LOG_LIMITS, ...limits });
  return { clock, logger, log };
}

const LEFT_OUT = /--- eitri: (\d+) bytes are missing here, the disk was too slow or full ---\n/;
const leftOut = (text: string): number =>
  [...text.matchAll(new RegExp(LEFT_OUT, 'g'))].reduce((sum, match) => sum + Number(match[1]), 0);

describe('serial log on a real disk', () => {
  it('is read and written by its owner alone, also where it stood open to others before', async () => {
    const path = join(tempFolder(), 'serial.log');
    writeFileSync(path, 'before\n');
    chmodSync(path, 0o644);
    const log = realLog(path);
    log.append(Buffer.from('after\n'));
    await log.close(5000);
    expect(readFileSync(path, 'utf8')).toBe('before\nafter\n');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const fresh = realLog(`${path}.new`);
    fresh.append(Buffer.from('x'));
    await fresh.close(5000);
    expect(statSync(`${path}.new`).mode & 0o777).toBe(0o600);
  });

  it('given 11 MiB, keeps two files of at most 4 MiB each, and in them the newest output without a gap', async () => {
    const path = join(tempFolder(), 'serial.log');
    const log = realLog(path);
    let line = 0;
    while (line * 16 < 11 * MIB) {
      const chunk = Array.from({ length: 4096 }, () => `line ${String(line++).padStart(10, '0')}\n`).join('');
      log.append(Buffer.from(chunk));
      // The disk keeps up: this test is about rotation and not about what is left out.
      await until(() => statSync(path, { throwIfNoEntry: false }) !== undefined && log.waitingBytes === 0, {
        everyMs: 1,
      });
    }
    await log.close(5000);
    expect(statSync(path).size).toBeLessThanOrEqual(4 * MIB);
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(4 * MIB);
    expect(statSync(path).size + statSync(`${path}.1`).size).toBeGreaterThan(4 * MIB);
    expect(existsSync(`${path}.2`)).toBe(false);
    const kept = Buffer.concat([readFileSync(`${path}.1`), readFileSync(path)]).toString();
    const numbers = kept
      .split('\n')
      .filter((text) => /^line \d{10}$/.test(text))
      .map((text) => Number(text.slice(5)));
    expect(numbers.at(-1)).toBe(line - 1);
    expect(numbers).toEqual(numbers.map((_, i) => (numbers[0] ?? 0) + i));
  });

  it('opened again, goes on where it ended, and says in between that the console was opened', async () => {
    const path = join(tempFolder(), 'serial.log');
    for (const life of [1, 2, 3]) {
      const log = realLog(path);
      log.noteIfResumed('opened again');
      log.append(Buffer.from(`life ${life}`));
      await log.close(5000);
    }
    expect(readFileSync(path, 'utf8')).toBe(
      'life 1\n--- eitri: opened again ---\nlife 2\n--- eitri: opened again ---\nlife 3',
    );
  });

  it('opened again at its limit, counts what stands there already', async () => {
    const path = join(tempFolder(), 'serial.log');
    writeFileSync(path, Buffer.alloc(1000, 'o'));
    const log = realLog(path, { fileBytes: 1024, pendingBytes: KIB });
    log.append(Buffer.alloc(100, 'n'));
    await log.close(5000);
    expect(statSync(`${path}.1`).size).toBe(1000);
    expect(readFileSync(path, 'utf8')).toBe('n'.repeat(100));
  });

  it('found far over its limit, is within its limits after the next rotation', async () => {
    const path = join(tempFolder(), 'serial.log');
    writeFileSync(path, Buffer.alloc(100 * KIB));
    const log = realLog(path, { fileBytes: 4 * KIB, pendingBytes: KIB });
    log.append(Buffer.from('x'));
    await log.close(5000);
    expect(statSync(path).size + statSync(`${path}.1`).size).toBeLessThanOrEqual(8 * KIB);
  });

  it('never writes through a link that somebody put in its place', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'victim'), 'untouched');
    symlinkSync(join(folder, 'victim'), join(folder, 'serial.log'));
    const log = realLog(join(folder, 'serial.log'));
    log.append(Buffer.from('guest output'));
    await log.close(5000);
    expect(readFileSync(join(folder, 'victim'), 'utf8')).toBe('untouched');
  });

  it('written before its folder is there, is written once it is', async () => {
    const folder = join(tempFolder(), 'later');
    const logger = new MemoryLogger();
    const log = new SerialLog(join(folder, 'serial.log'), { files: nodeLogFiles, clock: new FastClock(50), logger });
    log.append(Buffer.from('early'));
    await until(() => logger.count('console.log.failed') === 1);
    mkdirSync(folder);
    await until(() => existsSync(join(folder, 'serial.log')) && log.waitingBytes === 0);
    await log.close(5000);
    expect(readFileSync(join(folder, 'serial.log'), 'utf8')).toBe('early');
    expect(logger.count('console.log.recovered')).toBe(1);
  });

  it('its end is read over both files', async () => {
    const path = join(tempFolder(), 'serial.log');
    expect((await nodeLogFiles.readEnd(path, 10)).toString()).toBe('');
    writeFileSync(`${path}.1`, 'older.');
    writeFileSync(path, 'newer.');
    expect((await nodeLogFiles.readEnd(path, 3)).toString()).toBe('er.');
    expect((await nodeLogFiles.readEnd(path, 9)).toString()).toBe('er.newer.');
    expect((await nodeLogFiles.readEnd(path, 99)).toString()).toBe('older.newer.');
  });
});

describe('serial log on a disk with troubles', () => {
  it('a line of its own starts on a line of its own', async () => {
    const files = new MemoryLogFiles();
    const { log } = memoryLog(files);
    log.note('first');
    log.append(Buffer.from('login: '));
    log.note('second');
    await log.close(1000);
    expect(files.text('log')).toBe('--- eitri: first ---\nlogin: \n--- eitri: second ---\n');
  });

  it('full: takes what fits its store, waits for room, then writes that and how much is missing', async () => {
    const files = new MemoryLogFiles();
    files.full = true;
    files.takesBytes = 3;
    const { log, clock, logger } = memoryLog(files, { pendingBytes: 100 });
    log.append(Buffer.from('abcdef'));
    await clock.advance(0);
    for (let i = 0; i < 30; i++) log.append(Buffer.from('0123456789'));
    await clock.advance(120_000);
    expect(files.text('log')).toBe('abc');
    expect(logger.count('console.log.failed')).toBe(1);
    files.full = false;
    await clock.advance(30_000);
    await log.close(1000);
    const text = files.text('log');
    expect(text.startsWith(`abcdef${'0123456789'.repeat(10)}\n--- eitri: 200 bytes are missing here`)).toBe(true);
    expect(logger.count('console.log.recovered')).toBe(1);
  });

  it('full, with some room again: what comes after a gap is not written in front of the line that tells of the gap', async () => {
    const files = new MemoryLogFiles();
    files.full = true;
    const { log, clock } = memoryLog(files);
    // The disk is asked to take the first 256 KiB of it at once; the store then has room for as much again, and ten less.
    log.append(Buffer.alloc(MIB, 'a'));
    log.append(Buffer.alloc(256 * KIB + 10, 'a'));
    await clock.advance(0);
    files.takesBytes = 256 * KIB;
    await clock.advance(500);
    expect(log.waitingBytes).toBeLessThan(MIB);
    log.append(Buffer.alloc(10, 'b'));
    files.full = false;
    await clock.advance(30_000);
    await log.close(1000);
    const text = files.text('log');
    expect(text.length - MIB - 256 * KIB).toBeLessThan(100);
    expect(text.slice(MIB + 256 * KIB)).toBe(
      '\n--- eitri: 20 bytes are missing here, the disk was too slow or full ---\n',
    );
  });

  it('full: asks again at growing distances and not at each read of the guest', async () => {
    const files = new MemoryLogFiles();
    files.full = true;
    const { log, clock } = memoryLog(files);
    for (let second = 0; second < 600; second++) {
      log.append(Buffer.from('x'));
      await clock.advance(1000);
    }
    expect(files.appends).toBeLessThan(40);
    await log.close(1000);
  });

  it('full until the end: close gives up after one more try', async () => {
    const files = new MemoryLogFiles();
    files.full = true;
    const { log, clock } = memoryLog(files);
    log.append(Buffer.from('lost'));
    await clock.advance(10);
    const tries = files.appends;
    await log.close(1000);
    expect(files.appends).toBe(tries + 1);
  });

  it('hanging: append returns, and close resolves at its limit', async () => {
    const files = new MemoryLogFiles();
    files.hangs = true;
    const { log, clock, logger } = memoryLog(files, { pendingBytes: 10 });
    for (let i = 0; i < 1000; i++) log.append(Buffer.from('12345'));
    let closed = false;
    const close = log.close(1000).then(() => (closed = true));
    await clock.advance(999);
    expect(closed).toBe(false);
    await clock.advance(1);
    await close;
    expect(logger.count('console.log.unfinished')).toBe(1);
    log.append(Buffer.from('ignored'));
    expect(log.waitingBytes).toBeLessThanOrEqual(10);
  });

  it('whenever the disk is full and whenever it is not: what is written and what is said to be missing add up, in order', async () => {
    const step = fc.oneof(
      fc.integer({ min: 1, max: 60 }).map((bytes) => ({ kind: 'print' as const, bytes })),
      fc.boolean().map((full) => ({ kind: 'disk' as const, full })),
      fc.constant({ kind: 'time' as const }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const files = new MemoryLogFiles();
        const { log, clock } = memoryLog(files, { pendingBytes: 128 });
        let printed = 0;
        for (const s of steps) {
          if (s.kind === 'print') {
            log.append(Buffer.from(Array.from({ length: s.bytes }, (_, i) => 0x61 + ((printed + i) % 26))));
            printed += s.bytes;
          } else if (s.kind === 'disk') files.full = s.full;
          else await clock.advance(700);
        }
        files.full = false;
        await clock.advance(60_000);
        await log.close(1000);
        const text = files.text('log');
        // The guest of this test prints the alphabet, over and over: each piece goes on where the one before ended plus
        // what is said to be missing.
        let at = 0;
        let rest = text;
        for (;;) {
          const gap = new RegExp(`\n${LEFT_OUT.source}`).exec(rest);
          const piece = gap === null ? rest : rest.slice(0, gap.index);
          for (const letter of piece) expect(letter.charCodeAt(0) - 0x61).toBe(at++ % 26);
          if (gap === null) break;
          at += Number(gap[1]);
          rest = rest.slice(gap.index + gap[0].length);
        }
        expect(at).toBe(printed);
        expect(leftOut(text) + text.replaceAll(new RegExp(`\n?${LEFT_OUT.source}`, 'g'), '').length).toBe(printed);
      }),
      { numRuns: 200 },
    );
  });
});
