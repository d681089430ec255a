/** What this plugin writes for other programs, and reads from them. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { sampleUid } from '@eitri/conformance';
import { bridgeFix, foreignBridge } from '../../../plugins/netenv-linux/src/bridge.js';
import { parseCidr, type Cidr } from '../../../plugins/netenv-linux/src/cidr.js';
import { releasePacket } from '../../../plugins/netenv-linux/src/dhcp-release.js';
import {
  configOf,
  dnsmasqPaths,
  hostsOf,
  lastWords,
  parseLeases,
  reloadOutcome,
  withoutLease,
} from '../../../plugins/netenv-linux/src/dnsmasq-files.js';
import { parseLinks } from '../../../plugins/netenv-linux/src/links.js';
import { bridgeMacOf } from '../../../plugins/netenv-linux/src/names.js';
import { blockedAt } from '../../../plugins/netenv-linux/src/passable.js';
import { collisions, describeRoute, parseRoutes } from '../../../plugins/netenv-linux/src/routes.js';
import { rulesetOf } from '../../../plugins/netenv-linux/src/ruleset.js';
import { Shared } from '../../../plugins/netenv-linux/src/serial.js';
import { halfMade, orphans, tapLines } from '../../../plugins/netenv-linux/src/taps.js';

const subnet = (text: string): Cidr => parseCidr(text) ?? { network: 0, prefix: 0 };
const user = { name: 'dnsmasq', userId: 999, group: 'dnsmasq', groupId: 998 };
const ours = 'state-1';

const linksOf = (...links: readonly object[]) =>
  parseLinks(JSON.stringify(links.map((link, n) => ({ ifindex: n + 1, flags: ['UP'], ...link })))) ?? new Map();

const golden = (name: string): string =>
  readFileSync(new URL(`../../golden/netenv-linux/${name}.txt`, import.meta.url), 'utf8');

describe('rules', () => {
  it('for one subnet: byte for byte these, in no chain called fwd', () => {
    const text = rulesetOf(subnet('10.77.1.0/24'), 'eitri0');
    expect(text).toBe(golden('ruleset'));
    expect(text).not.toMatch(/chain fwd/);
  });
});

describe('the configuration of dnsmasq', () => {
  const want = {
    ...{ cidr: subnet('10.77.1.0/24'), bridge: 'eitri0', bridgeIndex: 7, user, resolvFile: undefined },
    paths: dnsmasqPaths('/run/eitri-agent'),
  };

  it('for one host: byte for byte this', () => {
    expect(configOf(want)).toBe(golden('dnsmasq'));
  });

  it('changes with the number of the bridge: a bridge made anew means a restart', () => {
    expect(configOf({ ...want, bridgeIndex: 8 })).not.toBe(configOf(want));
  });

  it('hosts are a MAC and an address a line, and nothing for nobody', () => {
    const reservations = [{ uid: sampleUid(1), mac: '02:00:00:00:00:05', address: '10.77.1.5' }];
    expect(hostsOf(reservations)).toBe('02:00:00:00:00:05,10.77.1.5\n');
    expect(hostsOf([])).toBe('');
  });
});

describe('what dnsmasq wrote', () => {
  const leases =
    '1796180750 02:00:00:00:00:05 10.77.1.5 * *\nduid 00:01\n1796180750 02:00:00:00:00:06 10.77.1.6 web *\n';

  it('leases: those of IPv4, and one is cut out without touching another line', () => {
    expect(parseLeases(leases)).toEqual([
      { mac: '02:00:00:00:00:05', address: '10.77.1.5' },
      { mac: '02:00:00:00:00:06', address: '10.77.1.6' },
    ]);
    expect(withoutLease(leases, { mac: '02:00:00:00:00:05', address: '10.77.1.5' })).toBe(
      leases.slice(leases.indexOf('duid')),
    );
  });

  it.each([
    ['dnsmasq-dhcp[7]: read /run/dhcp/hosts\n', true],
    ['dnsmasq[7]: cannot read /run/dhcp/hosts: Permission denied\n', false],
    ['dnsmasq[7]: cannot read /run/dhcp/hosts: Permission denied\ndnsmasq-dhcp[7]: read /run/dhcp/hosts\n', true],
    ['dnsmasq-dhcp[7]: read /run/dhcp/hosts-of-others\n', undefined],
    ['dnsmasq[7]: cleared cache\n', undefined],
  ])('a log of %j: the hosts were read %s', (log, ok) => {
    expect(reloadOutcome(log, '/run/dhcp/hosts')?.ok).toBe(ok);
  });

  it('its last words are what is left without its name', () => {
    const log = 'dnsmasq[7]: started\n\ndnsmasq: failed to bind DHCP server socket: Address already in use\n';
    expect(lastWords(log)).toBe('failed to bind DHCP server socket: Address already in use');
    expect(lastWords('')).toBe('');
  });
});

describe('a release', () => {
  it('is a DHCPRELEASE of this MAC and address, to this server', () => {
    const packet = Buffer.from(releasePacket({ mac: '02:00:00:00:00:05', address: '10.77.1.5', server: '10.77.1.1' }));
    expect(packet).toHaveLength(300);
    expect(packet.subarray(0, 4).toString('hex')).toBe('01010600');
    expect(packet.subarray(12, 16).toString('hex')).toBe('0a4d0105');
    expect(packet.subarray(28, 34).toString('hex')).toBe('020000000005');
    expect(packet.subarray(236, 250).toString('hex')).toBe('6382536335010736040a4d0101ff'.slice(0, 28));
  });
});

describe('a folder of another user', () => {
  const folder = (path: string, mode: number, userId = 0, groupId = 0) => ({ path, mode, userId, groupId });

  it('can be passed by others, by its group, by its owner, or not', () => {
    expect(
      blockedAt([folder('/', 0o755), folder('/run', 0o711), folder('/run/dhcp', 0o750, 0, 998)], user),
    ).toBeUndefined();
    expect(blockedAt([folder('/', 0o755), folder('/root', 0o700), folder('/root/run', 0o711)], user)).toBe('/root');
    // The owner's bits count for the owner, and nobody else's.
    expect(blockedAt([folder('/mine', 0o077, 999)], user)).toBe('/mine');
    expect(blockedAt([folder('/group', 0o701, 0, 998)], user)).toBe('/group');
  });
});

describe('routes', () => {
  const parsed = parseRoutes(
    JSON.stringify([
      { dst: 'default', gateway: '192.0.2.1', dev: 'eth0' },
      { dst: '192.0.2.0/24', dev: 'eth0' },
      { dst: '10.77.1.0/24', dev: 'eitri0' },
      { dst: '10.0.0.0/8', dev: 'tun0', table: '75' },
      { type: 'unreachable', dst: '10.64.0.0/10', dev: 'lo' },
      { type: 'local', dst: '10.77.1.9', dev: 'wg0', table: 'local' },
      { type: 'broadcast', dst: '10.77.1.255', dev: 'eth9', table: 'local' },
      { dst: '10.77.1.128/25', nexthops: [] },
    ]),
  );

  it('of any table, and addresses of other devices: they collide; the default route and our own bridge do not', () => {
    expect(collisions(subnet('10.77.1.0/24'), 'eitri0', parsed ?? []).map(describeRoute)).toEqual([
      '10.0.0.0/8 on tun0 (table 75)',
      '10.77.1.9/32 on wg0 (table local)',
      '10.77.1.128/25 on several devices',
    ]);
    expect(collisions(subnet('172.16.0.0/24'), 'eitri0', parsed ?? [])).toEqual([]);
  });

  it('nothing was printed: none; something else was: not none', () => {
    expect(parseRoutes('')).toEqual([]);
    expect(parseRoutes('{}')).toBeUndefined();
    expect(parseRoutes('[{"gateway":"192.0.2.1"}]')).toBeUndefined();
    expect(parseLinks('[{"ifname":"eth0"}]')).toBeUndefined();
  });
});

describe('devices', () => {
  const tap = { linkinfo: { info_kind: 'tun', info_data: { type: 'tap' } } };
  const want = { name: 'eit-01234567', bridge: 'eitri0', isolated: true };

  it('a new tap has our mark before it has its name, and its bridge before it is up', () => {
    const lines = tapLines(new Map(), want, ours);
    const at = (part: string): number => lines.findIndex((line) => line.includes(part));
    expect(at('alias')).toBeGreaterThan(-1);
    expect(at('alias')).toBeLessThan(at('name eit-01234567'));
    expect(at('master eitri0')).toBeLessThan(at('eit-01234567 up'));
    expect(at('isolated on')).toBeLessThan(at('eit-01234567 up'));
  });

  it('a tap that is as it should be needs no line', () => {
    const info = { ...tap.linkinfo, info_slave_data: { isolated: true } };
    const links = linksOf({ ifname: want.name, ifalias: ours, master: 'eitri0', linkinfo: info });
    expect(tapLines(links, want, ours)).toEqual([]);
  });

  it('orphans are taps with our mark and a name that no life has; what is half made is ours by its name', () => {
    const links = linksOf(
      { ifname: 'eit-01234567', ifalias: ours, ...tap },
      { ifname: 'eit-11111111', ifalias: 'another', ...tap },
      { ifname: 'eit-22222222', ifalias: ours, linkinfo: { info_kind: 'bridge' } },
      { ifname: 'eit-my-own-tap', ifalias: ours, ...tap },
      { ifname: 'eixt-33333333', ...tap },
      { ifname: 'eixt-44444444', ifalias: 'another', ...tap },
      { ifname: 'eixt-55555555', linkinfo: { info_kind: 'veth' } },
    );
    expect(orphans(links, ours, new Set([sampleUid(1)])).map(({ name }) => name)).toEqual(['eit-01234567']);
    expect(halfMade(links, ours).map(({ name }) => name)).toEqual(['eixt-33333333']);
  });

  it("the bridge is a stranger's without our mark, or as another kind of device", () => {
    const bridge = { ifname: 'eitri0', linkinfo: { info_kind: 'bridge' } };
    expect(foreignBridge(new Map(), ours)).toBeUndefined();
    expect(foreignBridge(linksOf({ ...bridge, ifalias: ours }), ours)).toBeUndefined();
    expect(foreignBridge(linksOf(bridge), ours)).toContain('bears no mark');
    expect(foreignBridge(linksOf({ ifname: 'eitri0', ifalias: ours, ...tap }), ours)).toBeDefined();
  });

  it("a new bridge has a MAC of the state's own, and our mark before its name", () => {
    const mac = bridgeMacOf(ours);
    expect(mac).toMatch(/^02(:[0-9a-f]{2}){5}$/);
    expect(bridgeMacOf('state-2')).not.toBe(mac);
    const { lines } = bridgeFix(new Map(), [], { stateId: ours, mac, address: '10.77.1.1/24' });
    expect(lines[0]).toContain(`address ${mac}`);
    expect(lines.findIndex((line) => line.includes('alias'))).toBeLessThan(
      lines.findIndex((line) => line.includes('name eitri0')),
    );
  });
});

describe('work that one run does for many', () => {
  it('ten ask while one runs: one more run, which begins after they asked, answers all', async () => {
    let runs = 0;
    let release: () => void = () => undefined;
    const shared = new Shared(async () => {
      runs++;
      if (runs === 1) await new Promise<void>((resolve) => (release = resolve));
    });
    const first = shared.run();
    await Promise.resolve();
    await Promise.resolve();
    const later = Array.from({ length: 10 }, () => shared.run());
    release();
    await Promise.all([first, ...later]);
    expect(runs).toBe(2);
  });

  it('a run fails: who asked for it is told, and the next one works', async () => {
    let fails = true;
    const shared = new Shared(() => (fails ? Promise.reject(new Error('no')) : Promise.resolve()));
    await expect(shared.run()).rejects.toThrow('no');
    fails = false;
    await shared.run();
  });
});
