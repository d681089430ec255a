import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { VmUid } from '@eitri/core/contracts';
import {
  doubling,
  formatBytes,
  formatDuration,
  fullJitter,
  GIB,
  isNegativeDuration,
  isNetworkName,
  isVmId,
  isVmUid,
  MAX_DISK_GIB,
  MIB,
  namedMac,
  natMac,
  nearest,
  parseDuration,
  parseSize,
  shortHash,
  stableJson,
} from '@eitri/core/kit';

describe('a VM id', () => {
  it.each(['web-1', 'a', '0', 'a'.repeat(63)])('may be %s', (id) => {
    expect(isVmId(id)).toBe(true);
  });
  it.each(['', '../x', '..', 'a/b', '-a', 'A', 'a'.repeat(64), 'a b', 'a\n', 'ä'])('may not be %j', (id) => {
    expect(isVmId(id)).toBe(false);
  });
});

describe('a uid', () => {
  it('is a lower-case UUID', () => {
    expect(isVmUid('0b5c2a1e-0000-4000-8000-00000000000a')).toBe(true);
    expect(isVmUid('0B5C2A1E-0000-4000-8000-00000000000A')).toBe(false);
    expect(isVmUid('0b5c2a1e-0000-4000-8000-00000000000a/..')).toBe(false);
  });
  it('gives two MACs that are stable, local, unicast and differ', () => {
    fc.assert(
      fc.property(fc.uuid(), (text) => {
        const uid = text as VmUid;
        expect(natMac(uid)).toMatch(/^02(:[0-9a-f]{2}){5}$/);
        expect(natMac(uid)).toBe(natMac(uid));
        expect(natMac(uid)).not.toBe(namedMac(uid));
      }),
    );
  });
});

describe('a network name', () => {
  it('is short, plain and not nat', () => {
    expect(['lab', 'a-b', 'x'].every(isNetworkName)).toBe(true);
    expect(['', 'nat', '-a', 'a-', 'A', 'a'.repeat(33), 'a=b'].some(isNetworkName)).toBe(false);
  });
});

describe('a size', () => {
  it.each([
    ['2GiB', 2 * GIB],
    ['2G', 2 * GIB],
    ['512 MiB', 512 * MIB],
    ['512', 512 * MIB],
    ['0', 0],
    ['1048576GiB', MAX_DISK_GIB * GIB],
  ])('%s is %i bytes', (text, bytes) => {
    expect(parseSize(text, MIB)).toBe(bytes);
  });
  it.each(['', '-1', '1.5GiB', '2GB', '2 g', 'GiB', '99999999999999TiB'])('may not be %j', (text) => {
    expect(parseSize(text, MIB)).toBeUndefined();
  });
  it('never wraps: what it answers is a safe whole number', () => {
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 31 - 1 }), fc.constantFrom('K', 'M', 'G', 'T', 'KiB', 'GiB', ''), (n, unit) => {
        const bytes = parseSize(`${n}${unit}`, GIB);
        expect(bytes === undefined || (Number.isSafeInteger(bytes) && bytes >= n)).toBe(true);
      }),
    );
  });
  it('is shown for people', () => {
    expect([0, 512, 1536, 3 * MIB, 20 * GIB].map(formatBytes)).toEqual(['0 B', '512 B', '1.5 KiB', '3 MiB', '20 GiB']);
  });
});

describe('a duration', () => {
  it.each([
    ['90s', 90_000],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['1.5s', 1_500],
    ['.5s', 500],
    ['1.s', 1_000],
    ['+5m', 300_000],
    ['-0', 0],
    ['0s', 0],
    ['2500us', 3],
    ['2500µs', 3],
    ['2500μs', 3],
    // Not 0, which often means "for ever".
    ['100ns', 1],
    ['0', 0],
  ])('%s is %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
  it.each(['', '5', '-1s', '5 minutes', '1d', 's', '9999999999999999h', '.s', '+-1s', '1 s', '1xs'])(
    'may not be %j',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
  it('that is negative is told from one that is none', () => {
    expect(['-1s', '-1h30m', ' -100ns'].map(isNegativeDuration)).toEqual([true, true, true]);
    expect(['1s', '-', '-x', '-5', '--1s'].map(isNegativeDuration)).toEqual([false, false, false, false, false]);
  });
  it('comes back from its written form', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10 ** 9 }), (ms) => {
        const whole = ms < 1_000 ? ms : Math.round(ms / 1_000) * 1_000;
        expect(parseDuration(formatDuration(whole))).toBe(whole);
      }),
    );
  });
});

describe('a wait', () => {
  it('doubles up to its bound, and is never negative or endless', () => {
    expect([0, 1, 2, 3, 6, 7, 100].map((n) => doubling(n, 10_000, 300_000))).toEqual([
      0, 10_000, 20_000, 40_000, 300_000, 300_000, 300_000,
    ]);
    expect(fullJitter(1_000, 0)).toBe(0);
    expect(fullJitter(1_000, 0.999)).toBe(999);
  });
});

describe('the nearest known name', () => {
  it('is offered for a slip, and not for another word', () => {
    expect(nearest('memroy', ['memory', 'cpus'])).toBe('memory');
    expect(nearest('Memory', ['memory', 'cpus'])).toBe('memory');
    expect(nearest('zzzzzz', ['memory', 'cpus'])).toBeUndefined();
    expect(nearest('x', [])).toBeUndefined();
  });
});

describe('stable JSON', () => {
  it('does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(stableJson(turned)).toBe(stableJson(value));
      }),
    );
  });
  it('leaves out what is undefined, and keeps lists in order', () => {
    expect(stableJson({ b: undefined, a: [2, 1] })).toBe('{"a":[2,1]}');
  });
});

describe('a short hash', () => {
  it('has the asked length and tells apart ids that differ only at their end', () => {
    expect(shortHash('a'.repeat(60) + '1', 8)).toHaveLength(8);
    expect(shortHash('a'.repeat(60) + '1', 8)).not.toBe(shortHash('a'.repeat(60) + '2', 8));
  });
});
