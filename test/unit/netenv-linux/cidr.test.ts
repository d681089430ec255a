import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  contains,
  formatCidr,
  formatIpv4,
  gatewayOf,
  guestAddress,
  guestRoom,
  isGuestAddress,
  netmaskOf,
  overlaps,
  parseCidr,
  parseIpv4,
  sizeOf,
  type Cidr,
} from '../../../plugins/netenv-linux/src/cidr.js';
import { resolveGuestCidr } from '../../../plugins/netenv-linux/src/guest-cidr.js';

const address = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const cidr: fc.Arbitrary<Cidr> = fc
  .tuple(address, fc.integer({ min: 0, max: 32 }))
  .map(([value, prefix]) => ({ network: value - (value % sizeOf(prefix)), prefix }));

function parsed(text: string): Cidr {
  const found = parseCidr(text);
  if (found === undefined) throw new Error(`not a subnet: ${text}`);
  return found;
}

describe('addresses and subnets', () => {
  it('any address is written and read: the same', () => {
    fc.assert(fc.property(address, (value) => parseIpv4(formatIpv4(value)) === value));
  });

  it('any subnet is written and read: the same', () => {
    fc.assert(
      fc.property(cidr, (one) => {
        expect(parseCidr(formatCidr(one))).toEqual(one);
      }),
    );
  });

  it('two subnets overlap exactly if some address is in both', () => {
    fc.assert(
      fc.property(cidr, cidr, (a, b) => {
        const [later] = [a, b].sort((x, y) => y.network - x.network);
        const shared = later !== undefined && contains(a, later.network) && contains(b, later.network);
        expect(overlaps(a, b)).toBe(shared);
        expect(overlaps(b, a)).toBe(shared);
      }),
    );
  });

  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '1.2.3.04',
    '1.2.3.-4',
    ' 1.2.3.4',
    '1.2.3.4/33',
    '1.2.3.4/',
    '1.2.3.4/08',
    'a.b.c.d/8',
  ])('%j is no subnet', (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });

  it('in the upper half of all addresses nothing becomes negative', () => {
    const subnet = parsed('192.168.255.0/24');
    expect(gatewayOf(subnet)).toBe('192.168.255.1');
    expect(netmaskOf(subnet)).toBe('255.255.255.0');
    expect(overlaps(subnet, parsed('10.0.0.0/8'))).toBe(false);
  });

  it('guests have all addresses but the first two and the last', () => {
    const subnet = parsed('10.77.9.0/29');
    const all = Array.from({ length: guestRoom(subnet) }, (_, n) => guestAddress(subnet, n));
    expect(all).toEqual(['10.77.9.2', '10.77.9.3', '10.77.9.4', '10.77.9.5', '10.77.9.6']);
    for (const one of all) expect(isGuestAddress(subnet, one)).toBe(true);
    for (const one of ['10.77.9.0', '10.77.9.1', '10.77.9.7', '10.77.8.4', 'x']) {
      expect(isGuestAddress(subnet, one)).toBe(false);
    }
  });
});

describe('the guest subnet', () => {
  const chosen = (sources: Parameters<typeof resolveGuestCidr>[0]): string => {
    const resolved = resolveGuestCidr(sources);
    return resolved.ok ? formatCidr(resolved.cidr) : resolved.why;
  };

  it('comes from the state, else the flag, else the suggestion, else the last resort', () => {
    const all = { persisted: '10.1.0.0/24', flag: '10.2.0.0/24', suggestion: '10.3.0.0/24' };
    expect(chosen(all)).toBe('10.1.0.0/24');
    expect(chosen({ ...all, persisted: undefined })).toBe('10.2.0.0/24');
    expect(chosen({ suggestion: all.suggestion })).toBe('10.3.0.0/24');
    expect(chosen({})).toBe('10.77.1.0/24');
  });

  it('is in use: what a flag or the control plane says otherwise is told, and nothing where they agree', () => {
    const resolved = resolveGuestCidr({ persisted: '10.1.0.0/24', flag: '10.2.0.0/24', suggestion: '10.1.0.0/24' });
    expect(resolved).toMatchObject({
      notes: ["--bridge-cidr 10.2.0.0/24 is not in force: this host's guests are on 10.1.0.0/24"],
    });
  });

  it.each([
    [{ flag: '10.77.1.0' }, '--bridge-cidr 10.77.1.0 is no IPv4 subnet'],
    [{ flag: 'fd00::/64' }, '--bridge-cidr fd00::/64 is no IPv4 subnet'],
    [{ flag: '10.77.1.5/24' }, 'did you mean 10.77.1.0/24?'],
    [{ flag: '10.77.1.0/31' }, '--bridge-cidr 10.77.1.0/31 is too small'],
    [{ flag: '8.0.0.0/7' }, '--bridge-cidr 8.0.0.0/7 is too large'],
    [{ flag: '127.5.0.0/16' }, '127.0.0.0/8 is the loopback'],
    [{ flag: '240.0.0.0/8' }, 'multicast'],
    [{ persisted: '', flag: '10.2.0.0/24' }, 'the guest subnet kept in this state, "", is no IPv4 subnet'],
    [{ suggestion: '10.2.0.0/32' }, 'the guest subnet that the control plane suggests, "10.2.0.0/32", is too small'],
    [{ persisted: '10.1.0.0/24', flag: 'nonsense' }, '--bridge-cidr nonsense is no IPv4 subnet'],
  ])('%j is refused by name', (sources, told) => {
    expect(chosen(sources)).toContain(told);
  });

  it('may be as small as one guest', () => {
    expect(chosen({ flag: '10.77.1.0/30' })).toBe('10.77.1.0/30');
  });
});
