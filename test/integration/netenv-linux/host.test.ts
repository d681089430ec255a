/**
 * The host's side in a namespace: routes and rules by packets that pass or don't, devices that drift, and whose they are.
 */
import { describe, expect, it } from 'vitest';
import { sampleUid } from '@eitri/conformance';
import type { NetworkBackend } from '@eitri/core/contracts';
import { errorLine, isPermanent, natMac } from '@eitri/core/kit';
import { WORLD, type NetClient, type NetenvLab } from '../../support/netenv/lab.js';
import { newLab, up } from '../../support/netenv/start.js';
import { STATE_ID } from '../../support/netenv/host.js';
import { calm } from '../../support/quiet.js';
import { until } from '../../support/until.js';

const PORT = '8080';

async function attach(lab: NetenvLab, { network }: NetworkBackend, n: number, named?: string): Promise<string> {
  const uid = sampleUid(n);
  const mac = natMac(uid);
  lab.records.add(uid);
  const address = await network.reserveIp(uid, mac, calm());
  const request = { uid, mac, address };
  const second = { network: named ?? '', mac: '02:00:00:00:00:77' };
  await network.createTap(named === undefined ? request : { ...request, named: second }, calm());
  return await network.tapName(uid);
}

/** A client in a guest's place, with its address and its way out. */
async function guest(lab: NetenvLab, agent: NetworkBackend, n: number): Promise<NetClient> {
  await attach(lab, agent, n);
  const client = await lab.client(natMac(sampleUid(n)));
  expect(await client.lease()).toBeDefined();
  return client;
}

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );

describe('a guest reaches out', () => {
  it('to a server behind the uplink: it is answered, and seen under the address of the host', async () => {
    const lab = await newLab();
    const client = await guest(lab, await up(lab), 1);
    lab.world.spawn('socat', `TCP4-LISTEN:${PORT},fork`, 'SYSTEM:echo $SOCAT_PEERADDR');
    const seen = await until(() => client.namespace.exec('socat', '-u', `TCP4:${WORLD}:${PORT}`, '-'));
    expect(seen.trim()).toBe('192.0.2.2');
  });

  it('under an address that is not of its subnet: nothing passes', async () => {
    const lab = await newLab();
    const client = await guest(lab, await up(lab), 1);
    const server = lab.world.spawn('socat', '-u', `UDP4-RECV:${PORT}`, '-');
    const heard: string[] = [];
    server.stdout?.on('data', (chunk: Buffer) => heard.push(chunk.toString()));
    await until(async () => (await lab.world.exec('ss', '-Hlun')).includes(`:${PORT}`));
    await client.namespace.ip('address add 198.51.100.9/32 dev eth0');
    const send = (word: string, from: string): Promise<string> =>
      client.namespace.exec('sh', '-c', `echo ${word} | socat -u - UDP4-SENDTO:${WORLD}:${PORT}${from}`);
    await send('forged', ',bind=198.51.100.9');
    await send('honest', '');
    await until(() => heard.join('').includes('honest'));
    expect(heard.join('')).not.toContain('forged');
  });
});

describe('somebody behind the uplink reaches in', () => {
  it('to a guest, unasked: nothing passes; the host itself gets through', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const client = await guest(lab, agent, 1);
    const address = (await agent.network.address(sampleUid(1), calm())) ?? '';
    client.namespace.spawn('socat', `TCP4-LISTEN:${PORT},fork`, 'SYSTEM:echo hello');
    await lab.world.ip('route add 10.77.9.0/28 via 192.0.2.2');
    expect((await until(() => lab.host.exec('socat', '-u', `TCP4:${address}:${PORT}`, '-'))).trim()).toBe('hello');
    const dial = `TCP4:${address}:${PORT},connect-timeout=1`;
    await expect(lab.world.exec('socat', '-u', dial, '-')).rejects.toThrow();
    // It was our rule, and nothing else on the way.
    await lab.host.exec('nft', 'flush', 'ruleset');
    expect((await lab.world.exec('socat', '-u', dial, '-')).trim()).toBe('hello');
  });
});

describe('the bridge', () => {
  it('has a MAC of this state, our mark, the first address, and no IPv6', async () => {
    const lab = await newLab();
    await up(lab);
    const link = (await lab.links()).get('eitri0');
    expect(link).toMatchObject({ ifalias: STATE_ID, address: expect.stringMatching(/^02:/) as string });
    const addresses = await lab.host.exec('ip', '-o', 'address', 'show', 'dev', 'eitri0');
    expect(addresses).toContain('inet 10.77.9.1/28');
    expect(addresses).not.toContain('inet6');
    expect((await lab.host.exec('sysctl', '-n', 'net.ipv4.ip_forward')).trim()).toBe('1');
  });

  it.each([
    ['its address is taken', 'address delete 10.77.9.1/28 dev eitri0', 'has its address 10.77.9.1/28 again'],
    ['it gets a second address', 'address add 10.88.0.1/16 dev eitri0', 'has lost the address 10.88.0.1/16'],
    ['it is set down', 'link set eitri0 down', 'eitri0 is up again'],
    ['its MAC is changed', 'link set eitri0 address 02:00:00:00:00:01', 'has its own MAC'],
  ])('%s: it is put right and told', async (_situation, drift, told) => {
    const lab = await newLab();
    const agent = await up(lab);
    await lab.host.ip(drift);
    expect((await agent.hostNetwork.repair(calm())).join()).toContain(told);
    expect(await agent.hostNetwork.repair(calm())).toEqual([]);
  });

  it('forwarding is switched off, or a rule of ours is removed: put right and told', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const before = await lab.ruleset();
    await lab.host.exec('sysctl', '-w', 'net.ipv4.ip_forward=0');
    await lab.host.exec('nft', 'flush', 'chain', 'inet', 'eitri', 'forward');
    expect(await agent.hostNetwork.repair(calm())).toHaveLength(2);
    expect(await lab.ruleset()).toBe(before);
  });
});

describe('the next agent', () => {
  it('finds all as it should be: no rule and no device is made anew', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const tap = await attach(lab, agent, 1);
    const address = (await agent.network.address(sampleUid(1), calm())) ?? '';
    const [uid, mac] = [sampleUid(1), natMac(sampleUid(1))];
    // A table, a chain or a rule that was made anew has another handle; a device another index.
    const look = async (): Promise<readonly unknown[]> => [
      await lab.host.exec('nft', '-a', 'list', 'ruleset'),
      ...['eitri0', tap].map(async (name) => (await lab.links()).get(name)?.['ifindex']),
      await lab.dnsmasqPids(),
    ];
    const before = await Promise.all(await look());
    const next = await up(lab, await lab.agent(), [{ uid, mac, address }]);
    await next.network.createTap({ uid, mac, address }, calm());
    expect(await next.hostNetwork.repair(calm())).toEqual([]);
    expect(await Promise.all(await look())).toEqual(before);
  });

  it('comes with another subnet for its rules: they are made anew', async () => {
    const lab = await newLab();
    await up(lab);
    await up(lab, await lab.agent({ settings: { bridgeCidr: '10.88.0.0/24' } }));
    expect(await lab.ruleset()).toContain('10.88.0.0/24');
    expect(await lab.ruleset()).not.toContain('10.77.9.0/28');
  });
});

describe('somebody else has', () => {
  it('rules of his own: they stand beside ours, also after a repair and a teardown', async () => {
    const lab = await newLab();
    await lab.host.exec('nft', 'add', 'table', 'ip', 'docker');
    const agent = await up(lab);
    await agent.hostNetwork.repair(calm());
    await agent.hostNetwork.teardown(calm());
    expect((await lab.ruleset()).trim()).toBe('table ip docker {\n}');
  });

  it('an agent of another state on this host: the bridge is refused as its, and not touched', async () => {
    const lab = await newLab();
    await up(lab);
    const other = await lab.agent({ settings: { stateId: 'another-state', bridgeCidr: '10.88.0.0/24' } });
    const error = await errorOf(other.hostNetwork.ensureBridge(calm()));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain(`it is marked "${STATE_ID}"`);
    const rules = await lab.ruleset();
    await other.hostNetwork.teardown(calm());
    expect((await lab.links()).has('eitri0')).toBe(true);
    expect(await lab.ruleset()).toBe(rules);
  });

  it('taken the place of our bridge: a repair is refused, and works once it is gone', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    await lab.host.ip('link delete eitri0');
    await lab.host.ip('link add eitri0 type bridge');
    const error = await errorOf(agent.hostNetwork.repair(calm()));
    expect(errorLine(error)).toContain('it bears no mark');
    expect(isPermanent(error)).toBe(false);
    await lab.host.ip('link delete eitri0');
    expect((await agent.hostNetwork.repair(calm())).join()).toContain('eitri0 was gone and is there again');
  });

  it('a tap of the very name, without our mark: refused and left, by the sweep and by a deleteTap too', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const uid = sampleUid(1);
    const name = await agent.network.tapName(uid);
    await lab.host.ip(`tuntap add dev ${name} mode tap`);
    await expect(attach(lab, agent, 1)).rejects.toThrow(`${name} is not this agent's: it bears no mark`);
    await agent.network.deleteTap(uid, calm());
    lab.records.clear();
    expect(await agent.hostNetwork.repair(calm())).toEqual([]);
    expect(await lab.taps()).toEqual([name]);
  });
});

describe('several guests come at once', () => {
  it('and go at once: each has its tap on the bridge, and none is left', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const names = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => attach(lab, agent, n)));
    expect(await lab.taps()).toEqual(names.toSorted());
    const links = await lab.links();
    expect(names.map((name) => links.get(name)?.['master'])).toEqual(names.map(() => 'eitri0'));
    await Promise.all([1, 2, 3, 4, 5, 6].map((n) => agent.network.deleteTap(sampleUid(n), calm())));
    expect(await lab.taps()).toEqual([]);
  });

  it("a stranger's device has the name of one's tap: that one alone is refused, and the strange device left", async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const strange = await agent.network.tapName(sampleUid(3));
    await lab.host.ip(`tuntap add dev ${strange} mode tap`);
    const settled = await Promise.allSettled([1, 2, 3, 4].map((n) => attach(lab, agent, n)));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await lab.taps()).toHaveLength(4);
    await Promise.all([1, 2, 3, 4].map((n) => agent.network.deleteTap(sampleUid(n), calm())));
    expect(await lab.taps()).toEqual([strange]);
  });

  it('and one gives up before its turn: it is refused and leaves no tap, the others have theirs', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const leaves = new AbortController();
    const attached = [1, 2, 3].map(async (n) => {
      const uid = sampleUid(n);
      const mac = natMac(uid);
      lab.records.add(uid);
      const address = await agent.network.reserveIp(uid, mac, calm());
      await agent.network.createTap({ uid, mac, address }, n === 2 ? leaves.signal : calm());
    });
    const settled = Promise.allSettled(attached);
    await Promise.resolve();
    leaves.abort(new Error('no longer wanted'));
    expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const kept = await Promise.all([1, 3].map((n) => agent.network.tapName(sampleUid(n))));
    expect(await lab.taps()).toEqual(kept.toSorted());
  });
});

describe('taps that belong to no VM', () => {
  it('bear our mark, and no record names them: swept; those with a record stay', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const kept = await attach(lab, agent, 1);
    const orphan = await attach(lab, agent, 2);
    await lab.host.ip('tuntap add dev eixt-0123abcd mode tap');
    lab.records.delete(sampleUid(2));
    const told = await agent.hostNetwork.repair(calm());
    expect(told.join()).toContain(orphan);
    expect(await lab.taps()).toEqual([kept]);
  });

  it("the records can't be read: nothing is swept", async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const kept = await attach(lab, agent, 1);
    const next = await lab.agent({ recordedUids: () => Promise.reject(new Error('EIO')) });
    await up(lab, next);
    await next.hostNetwork.repair(calm());
    expect(await lab.taps()).toEqual([kept]);
  });

  it("ten guests can't be attached, half-way through: nothing of them is left", async () => {
    const lab = await newLab();
    await lab.host.ip('link add br-lab type bridge');
    const settings = { namedNetworks: [{ name: 'lab', bridge: 'br-lab' }] };
    const agent = await up(lab, await lab.agent({ settings }));
    await lab.host.ip('link delete br-lab');
    for (let n = 1; n <= 10; n++) expect(await errorOf(attach(lab, agent, n, 'lab'))).toBeInstanceOf(Error);
    expect(await lab.taps()).toEqual([]);
  });
});

describe('guests are isolated', () => {
  it('their taps reach no other isolated port; asked for no longer, they do', async () => {
    const lab = await newLab();
    const agent = await up(lab, await lab.agent({ settings: { guestIsolation: true } }));
    const tap = await attach(lab, agent, 1);
    const isolated = async (): Promise<unknown> => {
      const info = (await lab.links()).get(tap)?.['linkinfo'] as { info_slave_data?: { isolated?: boolean } };
      return info.info_slave_data?.isolated;
    };
    expect(await isolated()).toBe(true);
    await lab.host.ip(`link set ${tap} type bridge_slave isolated off`);
    expect(await agent.hostNetwork.repair(calm())).toEqual([`${tap} is not isolated: put right`]);
    expect(await isolated()).toBe(true);
    const open = await up(lab, await lab.agent(), [
      {
        uid: sampleUid(1),
        mac: natMac(sampleUid(1)),
        address: (await agent.network.address(sampleUid(1), calm())) ?? '',
      },
    ]);
    await open.hostNetwork.repair(calm());
    expect(await isolated()).toBe(false);
  });
});

describe('the guest subnet', () => {
  it.each([
    ["the uplink's own subnet", '192.0.2.0/24', '192.0.2.0/24 on up0'],
    ["a part of the uplink's", '192.0.2.128/25', '192.0.2.0/24 on up0'],
    ["one that holds the uplink's", '192.0.0.0/16', '192.0.2.0/24 on up0'],
    ["below a VPN's route in a table of its own", '10.77.9.0/28', '10.0.0.0/8 on up0 (table 75)'],
  ])('is %s: refused, permanent, naming both, and nothing is made', async (_situation, bridgeCidr, told) => {
    const lab = await newLab();
    await lab.host.ip(`route add 10.0.0.0/8 via ${WORLD} table 75`);
    const agent = await lab.agent({ settings: { bridgeCidr } });
    const error = await errorOf(agent.hostNetwork.checkUplink(calm()));
    expect(isPermanent(error)).toBe(true);
    for (const word of [bridgeCidr, told, '--bridge-cidr']) expect(errorLine(error)).toContain(word);
    expect((await lab.links()).has('eitri0')).toBe(false);
  });

  it('overlaps nothing but the default route, its two halves, a black hole, and its own bridge: no trouble', async () => {
    const lab = await newLab();
    for (const half of ['0.0.0.0/1', '128.0.0.0/1']) await lab.host.ip(`route add ${half} via ${WORLD}`);
    await lab.host.ip('route add blackhole 10.0.0.0/8');
    await up(lab);
    await (await lab.agent()).hostNetwork.checkUplink(calm());
  });

  it('overlaps a route that came when guests were there already: said loudly, and the start goes on', async () => {
    const lab = await newLab();
    lab.records.add(sampleUid(1));
    await lab.host.ip(`route add 10.0.0.0/8 via ${WORLD}`);
    await up(lab);
    const loud = lab.log.filter(({ level, event }) => level === 'error' && event === 'netenv.uplink.overlap');
    expect(loud).toHaveLength(1);
    expect(JSON.stringify(loud)).toContain('10.0.0.0/8 on up0');
  });
});

describe('a host that is not fit', () => {
  it('lacks programs: each is named with its package, before anything is made', async () => {
    const lab = await newLab();
    const error = await errorOf(lab.agent({ missing: ['nft', 'dnsmasq', 'ip'] }));
    expect(isPermanent(error)).toBe(true);
    const line = errorLine(error);
    expect(line).toContain('nft is not on this host: install the package nftables');
    expect(line).toContain('dnsmasq is not on this host: install the package dnsmasq-base on Debian');
    expect(line).toContain('ip is not on this host: install the package iproute2');
  });

  it('does not let the agent configure networks: CAP_NET_ADMIN is named', async () => {
    const lab = await newLab();
    const error = await errorOf(
      lab.agent({ prefix: ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin'] }),
    );
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain('it needs CAP_NET_ADMIN');
  });

  it.each([
    ['there is no such device', 'br-none', 'there is no device br-none'],
    ['it is no bridge', 'up0', 'up0 is no bridge'],
    ["it is the guests' own bridge", 'eitri0', "is the bridge of every guest's first network"],
  ])("a named network's bridge can't be one: %s", async (_situation, bridge, told) => {
    const lab = await newLab();
    const agent = await lab.agent({ settings: { namedNetworks: [{ name: 'lab', bridge }] } });
    const error = await errorOf(agent.hostNetwork.verifyNetworks(calm()));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain(`--host-network lab=${bridge}`);
    expect(errorLine(error)).toContain(told);
  });
});
