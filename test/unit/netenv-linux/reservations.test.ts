import { describe, expect, it } from 'vitest';
import { sampleUid } from '@eitri/conformance';
import { codeOf, errorFactory, isPermanent, natMac } from '@eitri/core/kit';
import { parseCidr } from '../../../plugins/netenv-linux/src/cidr.js';
import { namedTapOf, natTapOf } from '../../../plugins/netenv-linux/src/names.js';
import { Reservations } from '../../../plugins/netenv-linux/src/reservations.js';

function ledger(text = '10.77.9.0/29'): Reservations {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(text);
  return new Reservations(cidr, errorFactory);
}

const reserve = (of: Reservations, n: number): string => of.reserve(sampleUid(n), natMac(sampleUid(n)));

describe('an address', () => {
  it('was lost before anybody kept it: the same life is given the same one again', () => {
    for (let n = 1; n <= 50; n++) expect(reserve(ledger('10.0.0.0/16'), n)).toBe(reserve(ledger('10.0.0.0/16'), n));
  });

  it('is wanted when none is left: retryable, with the code Capacity, and nothing of it is kept', () => {
    const full = ledger();
    const given = new Set([1, 2, 3, 4, 5].map((n) => reserve(full, n)));
    expect(given.size).toBe(5);
    let error: unknown;
    try {
      reserve(full, 6);
    } catch (thrown) {
      error = thrown;
    }
    expect(codeOf(error)).toBe('Capacity');
    expect(isPermanent(error)).toBe(false);
    expect(full.of(sampleUid(6))).toBeUndefined();
  });

  it('is on its way out: not answered any more, and not given to another until it is out', () => {
    const full = ledger();
    for (const n of [1, 2, 3, 4, 5]) reserve(full, n);
    full.leave(sampleUid(3));
    expect(full.served().map(({ uid }) => uid)).not.toContain(sampleUid(3));
    expect(() => reserve(full, 6)).toThrow('no address is left');
    const freed = full.of(sampleUid(3))?.address;
    full.forget(sampleUid(3));
    expect(reserve(full, 6)).toBe(freed);
  });

  it('could not be taken back: it is answered again', () => {
    const some = ledger();
    reserve(some, 1);
    some.leave(sampleUid(1));
    some.stay(sampleUid(1));
    expect(some.served()).toHaveLength(1);
  });
});

describe('records', () => {
  it.each([
    [
      'an address of another subnet',
      { address: '10.88.0.5', mac: '02:00:00:00:00:09' },
      'is no address for guests of 10.77.9.0/29',
    ],
    ['the address of the host', { address: '10.77.9.1', mac: '02:00:00:00:00:09' }, 'is no address for guests'],
    ['the address of another life', { address: '10.77.9.4', mac: '02:00:00:00:00:09' }, 'is reserved for'],
    [
      'the MAC of another life',
      { address: '10.77.9.5', mac: '02:00:00:00:00:01' },
      'its MAC 02:00:00:00:00:01 is that of',
    ],
  ])('tell of %s: refused with a sentence, and the other keeps what it has', (_what, changes, told) => {
    const some = ledger();
    const first = { uid: sampleUid(1), mac: '02:00:00:00:00:01', address: '10.77.9.4' };
    expect(some.replay(first)).toBeUndefined();
    expect(some.replay({ uid: sampleUid(2), ...changes })).toContain(told);
    expect(some.served()).toEqual([first]);
  });

  it('are replayed in any order: what is answered is in the order of addresses', () => {
    const some = ledger('10.77.0.0/16');
    for (const [n, address] of [
      [1, '10.77.10.2'],
      [2, '10.77.9.200'],
      [3, '10.77.9.3'],
    ] as const) {
      some.replay({ uid: sampleUid(n), mac: natMac(sampleUid(n)), address });
    }
    expect(some.served().map(({ address }) => address)).toEqual(['10.77.9.3', '10.77.9.200', '10.77.10.2']);
  });
});

describe("a tap's name", () => {
  it('fits the kernel for any uid, and differs where uids differ in their last character', () => {
    const names = Array.from({ length: 200 }, (_, n) => [natTapOf(sampleUid(n)), namedTapOf(sampleUid(n))]).flat();
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^ei[tn]-[0-9a-f]{8}$/);
  });
});
