import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatPidFile, MAX_PID_FILE_BYTES, parsePidFile } from '../../../src/host/pid-file.js';

const evidence = fc.record({
  pid: fc.integer({ min: 2, max: 2 ** 22 }),
  bootId: fc.string({ minLength: 1, maxLength: 100 }),
  startTime: fc.string({ minLength: 1, maxLength: 100 }),
});

describe('a pidfile', () => {
  it('comes back as it was written', () => {
    fc.assert(
      fc.property(evidence, (value) => {
        expect(parsePidFile(formatPidFile(value))).toEqual(value);
      }),
    );
  });

  it('cut anywhere is no evidence', () => {
    fc.assert(
      fc.property(evidence, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (value, part) => {
        const text = formatPidFile(value).trimEnd();
        expect(parsePidFile(text.slice(0, Math.floor(text.length * part)))).toBeUndefined();
      }),
    );
  });

  it('of any text never gives a pid that means a group, everybody, or the first process', () => {
    const pid = fc.oneof(fc.integer(), fc.double(), fc.string(), fc.constantFrom(0, 1, -1, 2 ** 31, 1.5, null, true));
    fc.assert(
      fc.property(pid, (value) => {
        const found = parsePidFile(JSON.stringify({ pid: value, bootId: 'b', startTime: '1' }))?.pid;
        if (found !== undefined) expect(Number.isInteger(found) && found > 1 && found <= 2 ** 22).toBe(true);
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(parsePidFile(text)).toBeUndefined();
      }),
    );
  });

  it.each(['null', '[]', '"x"', '42', '{"pid":5}', '{"pid":5,"bootId":"","startTime":"1"}', '\0'])(
    'that is %j is no evidence',
    (text) => expect(parsePidFile(text)).toBeUndefined(),
  );

  it('longer than any of ours is not looked at', () => {
    const text = formatPidFile({ pid: 5, bootId: 'b', startTime: '1' }) + ' '.repeat(MAX_PID_FILE_BYTES);
    expect(parsePidFile(text)).toBeUndefined();
  });
});
