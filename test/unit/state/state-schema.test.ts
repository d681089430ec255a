import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { errorLine, isPermanent } from '@eitri/core/kit';
import {
  controlFormat,
  formatStored,
  parseStored,
  RECORD_FIELDS,
  recordFormat,
  type Migration,
  type StoredFormat,
} from '../../../src/state/state-schema.js';
import { goldenRecord } from '../../support/records.js';

type Raw = Record<string, unknown>;
const golden = (): Raw => JSON.parse(goldenRecord()) as Raw;
const parse = (raw: Raw) => parseStored(recordFormat, JSON.stringify(raw));

function why(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(isPermanent(error)).toBe(true);
    return errorLine(error);
  }
  throw new Error('nothing was refused');
}

describe('a record of version 1', () => {
  it('is carried over: a grace that names no absence starts afresh', () => {
    const { shelvedMs, ...kept } = { ...(JSON.parse(goldenRecord(1)) as Raw), version: 2 } as Raw;
    expect(shelvedMs).toBe(0);
    expect(parse(JSON.parse(goldenRecord(1)) as Raw)).toEqual(kept);
    expect(parse({ ...(JSON.parse(goldenRecord(1)) as Raw), shelvedMs: 299_000 })).toEqual(kept);
  });
});

describe('a record of version 2', () => {
  it('as it was written then is read whole, and has every field that a record may have', () => {
    expect(parse(golden())).toEqual(golden());
    expect(Object.keys(golden()).sort()).toEqual([...RECORD_FIELDS].sort());
  });

  it('keeps fields that this agent does not know, at the top and inside, through a rewrite', () => {
    const raw = golden();
    raw['later'] = { a: 1 };
    (raw['spec'] as Raw)['gpu'] = 'x';
    expect(JSON.parse(formatStored(parse(raw)))).toEqual(raw);
  });

  it('without the fields that need not be there is read without them', () => {
    const optional = [
      'address',
      'networkAddress',
      'bootId',
      'startedAt',
      'intent',
      'failure',
      'stop',
      'lastExit',
      'diskGib',
      'shelved',
    ];
    const raw = Object.fromEntries(Object.entries(golden()).filter(([name]) => !optional.includes(name)));
    expect(parse(raw)).toEqual(raw);
  });

  it('with a reason that only a newer agent knows is read, the reason as Unknown', () => {
    const raw = golden();
    (raw['failure'] as Raw)['code'] = 'BrandNew';
    expect(parse(raw).failure?.code).toBe('Unknown');
  });

  it.each<[string, (raw: Raw) => void, RegExp]>([
    ['a field missing', (raw) => delete raw['mac'], /record is not valid: mac: /],
    ['a wrong type deep inside', (raw) => ((raw['spec'] as Raw)['cpus'] = 'two'), /spec\.cpus: /],
    ['an id that is a path', (raw) => (raw['id'] = '../x'), /id: must be the name of a VM/],
    ['a uid that is none', (raw) => (raw['uid'] = 'web-1'), /uid: must be a lower-case UUID/],
    ['null for an absent field', (raw) => (raw['address'] = null), /address: /],
    ['an unknown step', (raw) => ((raw['intent'] as Raw)['step'] = 'dance'), /intent\.step: /],
    ['a relative path', (raw) => ((raw['paths'] as Raw)['seed'] = 'seed.img'), /paths\.seed: /],
    [
      'a volume that is a path',
      (raw) => ((raw['spec'] as Raw)['volumes'] = [{ name: '..', sizeGib: 1 }]),
      /volumes\.0\.name/,
    ],
  ])('with %s is refused with the field’s path', (_what, spoil, message) => {
    const raw = golden();
    spoil(raw);
    expect(why(() => parse(raw))).toMatch(message);
  });
});

describe('a stored text', () => {
  it.each<[string, string, RegExp]>([
    ['nothing', '', /is empty/],
    ['an empty object', '{}', /version/],
    ['half an object', '{"version": 1, "uid": "0f8', /no JSON/],
    ['NULs', '\0\0\0\0', /no JSON/],
    ['a list', '[]', /no object/],
    ['null', 'null', /no object/],
    ['a version of a newer agent', '{"version": 99}', /newer agent/],
    ['a version that is none', '{"version": "1"}', /version/],
  ])('that is %s is refused, and told as what it is', (_what, text, message) => {
    expect(why(() => parseStored(recordFormat, text))).toMatch(message);
  });

  it('cut anywhere is refused', () => {
    const text = goldenRecord().trimEnd();
    fc.assert(
      fc.property(fc.integer({ min: 0, max: text.length - 1 }), (length) => {
        why(() => parseStored(recordFormat, text.slice(0, length)));
      }),
    );
  });

  it('of whatever content never gives a value or anything but a permanent error', () => {
    fc.assert(fc.property(fc.json(), (text) => void why(() => parseStored(controlFormat, text))));
  });
});

describe('an older version', () => {
  const format: StoredFormat<{ readonly version: number; readonly c: number }> = {
    what: 'thing',
    version: 3,
    migrations: new Map<number, Migration>([
      [1, (raw) => ({ ...raw, b: Number(raw['a']) + 1 })],
      [2, (raw) => ({ ...raw, c: Number(raw['b']) * 10 })],
    ]),
    schema: z.looseObject({ version: z.literal(3), c: z.number() }),
  };

  it('is carried over step by step, with fields that nobody knows', () => {
    const value = parseStored(format, '{"version": 1, "a": 4, "extra": true}');
    expect(value).toEqual({ version: 3, a: 4, b: 5, c: 50, extra: true });
    expect(parseStored(format, '{"version": 2, "b": 1}')).toEqual({ version: 3, b: 1, c: 10 });
  });

  it('from which no step leads on is refused', () => {
    expect(why(() => parseStored({ ...format, migrations: new Map() }, '{"version": 1}'))).toContain('no longer read');
  });
});
