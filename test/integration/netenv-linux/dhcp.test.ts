/**
 * DHCP and DNS for guests, by a real dnsmasq on a bridge in a namespace, asked by real clients.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sampleUid } from '@eitri/conformance';
import type { NetworkBackend, NetworkFinding, Reservation } from '@eitri/core/contracts';
import { errorLine, isPermanent, natMac } from '@eitri/core/kit';
import { bundle } from '../../support/bundle.js';
import { SUBNET, WORLD, type NetenvLab } from '../../support/netenv/lab.js';
import { newLab, up } from '../../support/netenv/start.js';
import { isAlive } from '../../support/processes.js';
import { calm } from '../../support/quiet.js';
import { until } from '../../support/until.js';

const GATEWAY = '10.77.9.1';

/** A guest with an address and a tap. */
async function attach(lab: NetenvLab, { network }: NetworkBackend, n: number): Promise<Reservation> {
  const uid = sampleUid(n);
  const mac = natMac(uid);
  lab.records.add(uid);
  const address = await network.reserveIp(uid, mac, calm());
  await network.createTap({ uid, mac, address }, calm());
  return { uid, mac, address };
}

const onlyPid = async (lab: NetenvLab): Promise<number> => {
  const pids = await lab.dnsmasqPids();
  expect(pids).toHaveLength(1);
  return pids[0] ?? 0;
};

const leaseFile = (lab: NetenvLab): string => readFileSync(join(lab.runDir, 'dhcp', 'leases'), 'utf8');

describe('a guest asks for an address', () => {
  it('under the client id of another guest (two clones of one image have one DUID): each is given its own', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const guests = [await attach(lab, agent, 1), await attach(lab, agent, 2)];
    const clients = await Promise.all(guests.map(({ mac }) => lab.client(mac)));
    for (let round = 0; round < 2; round++) {
      for (const [n, client] of clients.entries()) {
        expect(await client.lease('-x', '0x3d:ff00112233000200000ab11a2b3c4d5e6f')).toBe(guests[n]?.address);
        expect(leaseFile(lab).split('\n').filter(Boolean)).toHaveLength(round === 0 ? n + 1 : 2);
      }
    }
  });

  it('for that of another guest: it is given its own', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const own = await attach(lab, agent, 1);
    const other = await attach(lab, agent, 2);
    expect(await (await lab.client(own.mac)).lease('-r', other.address)).toBe(own.address);
  });

  it('that it remembers and that is not its own: it is told so, and not given another in its place', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const { mac, address } = await attach(lab, agent, 1);
    const client = await lab.client(mac);
    expect(await client.remembers(mac, '192.168.7.7')).toBe('nak');
    expect(await client.remembers(mac, '10.77.9.14')).toBe('nak');
    expect(await client.remembers(mac, address)).toBe('ack');
  });

  it('and is nobody that we know: it hears nothing, whatever it remembers', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const { address } = await attach(lab, agent, 1);
    const stranger = await lab.client('02:00:00:00:00:66');
    expect(await stranger.remembers('02:00:00:00:00:66', address)).toBeUndefined();
    expect(await stranger.remembers('02:00:00:00:00:66', '192.168.7.7')).toBeUndefined();
  });

  it('reserved after the server was started: it is answered, by the same process', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const before = await onlyPid(lab);
    for (const n of [1, 2, 3]) {
      const { mac, address } = await attach(lab, agent, n);
      expect(await (await lab.client(mac)).lease()).toBe(address);
    }
    expect(await onlyPid(lab)).toBe(before);
  });
});

describe('the agent is killed', () => {
  it('the guest renews and keeps its address; the next agent takes the same server over', async () => {
    const lab = await newLab();
    const [uid, mac] = [sampleUid(1), natMac(sampleUid(1))];
    lab.records.add(uid);
    const program = await bundle('netenv/agent.ts');
    const orders = {
      ...{ namespace: lab.host.name, folder: lab.folder, runDir: lab.runDir, bridgeCidr: SUBNET, uid, mac },
      resolvFile: lab.resolvFile,
    };
    const agent = spawn(process.execPath, [program, JSON.stringify(orders)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const said = await new Promise<string>((resolve) => {
      agent.stdout.once('data', (chunk: Buffer) => {
        resolve(chunk.toString());
      });
      agent.once('exit', () => {
        resolve('it ended');
      });
    });
    const { address } = JSON.parse(said) as { readonly address: string };
    const server = await onlyPid(lab);
    const client = await lab.client(mac);
    expect(await client.lease()).toBe(address);
    agent.kill('SIGKILL');
    await once(agent, 'exit');

    const renewing = client.namespace.spawn('udhcpc', '-i', 'eth0', '-f', '-s', '/bin/true', '-t', '2', '-T', '1');
    const heard: string[] = [];
    renewing.stderr?.on('data', (chunk: Buffer) => heard.push(chunk.toString()));
    await until(() => heard.join('').includes(`lease of ${address} obtained`));
    // SIGUSR1 makes the client renew at once.
    renewing.kill('SIGUSR1');
    await until(() => heard.join('').split(`lease of ${address} obtained`).length > 2, {
      what: 'the renewal is answered',
    });
    renewing.kill('SIGKILL');

    const next = await lab.agent();
    await up(lab, next, [{ uid, mac, address }]);
    expect(await onlyPid(lab)).toBe(server);
    expect(await client.lease()).toBe(address);
  });

  it('its pidfile is lost: the server is found by its command line, and taken over', async () => {
    const lab = await newLab();
    const { mac, address } = await attach(lab, await up(lab), 1);
    const server = await onlyPid(lab);
    writeFileSync(join(lab.runDir, 'dhcp', 'dnsmasq.pid'), '');
    const reservation = { uid: sampleUid(1), mac, address };
    await up(lab, await lab.agent(), [reservation]);
    expect(await onlyPid(lab)).toBe(server);
    expect(await (await lab.client(mac)).lease()).toBe(address);
  });

  it('the bridge is made anew meanwhile: the server is restarted, since it listens on the old one', async () => {
    const lab = await newLab();
    const reservation = await attach(lab, await up(lab), 1);
    const server = await onlyPid(lab);
    await lab.host.ip('link delete eitri0');
    await up(lab, await lab.agent(), [reservation]);
    await until(() => !isAlive(server));
    expect(await (await lab.client(reservation.mac)).lease()).toBe(reservation.address);
  });

  it('the next agent configures it otherwise: it is restarted, and knows the reservations', async () => {
    const lab = await newLab();
    const reservation = await attach(lab, await up(lab), 1);
    const server = await onlyPid(lab);
    lab.resolvFile = join(lab.folder, 'other-resolv.conf');
    writeFileSync(lab.resolvFile, `nameserver ${WORLD}\n`);
    await up(lab, await lab.agent(), [reservation]);
    expect(await onlyPid(lab)).not.toBe(server);
    expect(await (await lab.client(reservation.mac)).lease()).toBe(reservation.address);
  });
});

describe('a guest is destroyed', () => {
  it('nothing is plugged in any more: its lease is gone all the same, and the server runs on', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const { uid, mac, address } = await attach(lab, agent, 1);
    const client = await lab.client(mac);
    expect(await client.lease()).toBe(address);
    expect(leaseFile(lab)).toContain(`${mac} ${address}`);
    await client.namespace.ip('link delete eth0');
    const server = await onlyPid(lab);
    await agent.network.deleteTap(uid, calm());
    expect(leaseFile(lab)).not.toContain(mac);
    expect(await onlyPid(lab)).toBe(server);
  });

  it('the server hears nothing of it: the lease is cut out of its memory by a restart', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const [gone, stays] = [await attach(lab, agent, 1), await attach(lab, agent, 2)];
    expect(await (await lab.client(gone.mac)).lease()).toBe(gone.address);
    const other = await lab.client(stays.mac);
    expect(await other.lease()).toBe(stays.address);
    lab.deaf = true;
    await agent.network.deleteTap(gone.uid, calm());
    expect(leaseFile(lab)).not.toContain(gone.mac);
    expect(leaseFile(lab)).toContain(`${stays.mac} ${stays.address}`);
    expect(await other.lease()).toBe(stays.address);
  });

  it('fifty come, are leased their addresses and go, five at once: no tap, lease or rule is left behind', async () => {
    const lab = await newLab();
    const agent = await up(lab);
    const before = await lab.ruleset();
    const places = await Promise.all([1, 2, 3, 4, 5].map((n) => lab.client(natMac(sampleUid(n)))));
    for (let round = 0; round < 10; round++) {
      const guests = await Promise.all(places.map((_, n) => attach(lab, agent, round * places.length + n + 1)));
      const addresses = guests.map(({ address }) => address);
      expect(new Set(addresses).size).toBe(places.length);
      const leased = places.map(async (client, n) => {
        await client.become(guests[n]?.mac ?? '');
        return await client.lease();
      });
      // In a subnet this small a lease that was not taken back would soon be in the way of another guest.
      expect(await Promise.all(leased)).toEqual(addresses);
      for (const { mac, address } of guests) expect(leaseFile(lab)).toContain(`${mac} ${address}`);
      await Promise.all(guests.map(({ uid }) => agent.network.deleteTap(uid, calm())));
    }
    expect(await lab.taps()).toEqual([]);
    expect(leaseFile(lab)).toBe('');
    expect(readFileSync(join(lab.runDir, 'dhcp', 'hosts'), 'utf8')).toBe('');
    expect(await lab.ruleset()).toBe(before);
  });
});

describe('a repair', () => {
  it("finds a lease that is no guest's: it is taken back, and those of guests stay", async () => {
    const lab = await newLab();
    const former = await up(lab);
    const [gone, stays] = [await attach(lab, former, 1), await attach(lab, former, 2)];
    expect(await (await lab.client(gone.mac)).lease()).toBe(gone.address);
    expect(await (await lab.client(stays.mac)).lease()).toBe(stays.address);
    // The guest and its record went while no agent was there to tell the server.
    lab.records.delete(gone.uid);
    const agent = await up(lab, await lab.agent(), [stays]);
    expect(leaseFile(lab)).toContain(`${gone.mac} ${gone.address}`);
    const server = await onlyPid(lab);
    expect(await agent.hostNetwork.repair(calm())).toContain(
      `the lease of ${gone.address} to ${gone.mac}, which is no guest's, was taken back`,
    );
    expect(leaseFile(lab)).not.toContain(gone.mac);
    expect(leaseFile(lab)).toContain(`${stays.mac} ${stays.address}`);
    expect(await onlyPid(lab)).toBe(server);
    expect(await agent.hostNetwork.repair(calm())).toEqual([]);
  });
});

describe('a guest asks for a name', () => {
  it("of a zone that only the host's own name server knows: it is told through us", async () => {
    const lab = await newLab();
    const zone = ['-k', '-C', '/dev/null', '--no-resolv', '--address=/site.test/192.0.2.77', '--pid-file='];
    lab.world.spawn('dnsmasq', ...zone);
    const agent = await up(lab);
    const { mac } = await attach(lab, agent, 1);
    const client = await lab.client(mac);
    await client.lease();
    const answer = await until(() => client.namespace.exec('busybox', 'nslookup', '-type=a', 'db.site.test', GATEWAY));
    expect(answer).toContain('192.0.2.77');
  });
});

const isDead = ({ what, level }: NetworkFinding): boolean => what === 'dnsmasq' && level === 'warn';

describe("the server can't do its work", () => {
  it("its user can't pass the run directory: refused, permanent, naming folder and user", async () => {
    const lab = await newLab();
    const agent = await lab.agent();
    chmodSync(lab.folder, 0o700);
    const error: unknown = await up(lab, agent).catch((thrown: unknown) => thrown);
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain(`can't pass ${lab.folder},`);
    expect(await lab.dnsmasqPids()).toEqual([]);
  });

  it('another one holds port 67 there: refused, naming it; one on another device is no trouble', async () => {
    const lab = await newLab();
    const agent = await lab.agent();
    const elsewhere = lab.host.spawn('socat', 'UDP4-RECVFROM:67,so-bindtodevice=up0,reuseaddr', 'EXEC:cat');
    const taken = lab.host.spawn('socat', 'UDP4-RECVFROM:67,reuseaddr', 'EXEC:cat');
    await until(async () => (await lab.host.exec('ss', '-Hlun', 'sport', '=', ':67')).trim().split('\n').length === 2);
    await expect(up(lab, agent)).rejects.toThrow(/port 67 is taken on eitri0 by socat \(pid \d+\)/);
    taken.kill('SIGKILL');
    await once(taken, 'exit');
    await up(lab, agent);
    expect(await lab.dnsmasqPids()).toHaveLength(1);
    elsewhere.kill('SIGKILL');
  });

  it("it dies: a guest can't be attached, leaves nothing, and is attached after a repair", async () => {
    const lab = await newLab();
    const agent = await up(lab);
    process.kill(await onlyPid(lab), 'SIGKILL');
    // Gone for its namespace, it may still be one to reap, to which a signal is sent in vain.
    await until(async () => (await agent.hostNetwork.examine(calm())).some(isDead));
    await expect(attach(lab, agent, 1)).rejects.toThrow('it does not run on eitri0');
    expect(await lab.taps()).toEqual([]);
    expect(await agent.hostNetwork.repair(calm())).toEqual(['dnsmasq was started']);
    const { mac, address } = await attach(lab, agent, 1);
    expect(await (await lab.client(mac)).lease()).toBe(address);
  });
});
