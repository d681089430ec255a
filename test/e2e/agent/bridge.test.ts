/**
 * The whole agent and a real guest on the network of their host, a namespace. The tests follow on each other: each one
 * stands on the guest that those before it left.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BridgeHost } from '../../support/bridge-host.js';
import { tinyManifest } from '../../support/guests.js';
import { BOOT } from '../../support/operator.js';
import { until } from '../../support/until.js';

let host: BridgeHost;
let address = '';
let pid: number | undefined;

beforeAll(async () => {
  host = await BridgeHost.make();
  await host.operator.init();
  host.operator.put('one.yaml', await tinyManifest({ name: 'one', sshKey: host.publicKey }));
  await host.operator.start();
});
afterAll(() => host.remove());

/** The client in the guest is told to renew its lease now, and gets it. */
async function renewed(address: string): Promise<void> {
  const before = host.leases()[0]?.expires ?? 0;
  await until(async () => {
    await host.ssh(address, 'kill -USR1 $(pidof udhcpc)');
    return (host.leases()[0]?.expires ?? 0) > before;
  }, BOOT);
}

describe('a guest on the network of its host', () => {
  it('is leased the address that the agent reserved, and is reached there', async () => {
    const vm = await host.operator.untilVm('one', (one) => one.address !== undefined && one.phase === 'Running', BOOT);
    address = vm.address ?? '';
    pid = vm.pid;
    expect(await until(() => host.page(address), BOOT)).toMatch(/^tiny one /m);
    expect(host.leases()).toMatchObject([{ mac: vm.mac, address }]);
    expect(await host.taps()).toHaveLength(1);
  });

  it('renews its lease while no agent runs, keeps its address, and is found again by the next agent', async () => {
    await host.operator.kill();
    await renewed(address);
    expect(host.leases()).toMatchObject([{ address }]);
    expect(await host.ssh(address, 'ip -4 address show dev eth0')).toContain(` ${address}/`);

    await host.operator.start();
    const after = await host.operator.untilVm('one', (one) => one.phase === 'Running' && one.address !== undefined);
    expect({ address: after.address, pid: after.pid }).toEqual({ address, pid });
    expect(await host.page(address)).toMatch(/^tiny one /m);
  });

  it('has its network for as long as it runs: a teardown is refused, naming it, and an end of the agent leaves it', async () => {
    await host.operator.stop();
    const { code, stderr } = await host.operator.cli('network', 'teardown', '--backend', 'qemu');
    expect(code).toBe(75);
    expect(stderr.replace(/\n\s+/g, ' ')).toContain("the guests' network stays: one runs; stop the guests first");
    expect(await host.page(address)).toMatch(/^tiny one /m);
  });

  it('is never cut off by a route that comes to overlap its subnet: the next agent starts, and says so loudly', async () => {
    await host.net.ip('link add up0 type veth peer name up1');
    await host.net.ip('link set up0 up');
    await host.net.ip('route add 10.77.0.0/16 dev up0');
    await host.operator.start();
    const events = await host.operator.done('vm', 'events');
    expect(events).toContain('error: network: the guest subnet 10.77.1.0/24 overlaps what this host reaches elsewhere');
    expect(await host.page(address)).toMatch(/^tiny one /m);
    await host.net.ip('link delete up0');
  });

  it('keeps its lease and its address when its record is torn, over a start of the agent and a repair', async () => {
    const { uid } = await host.operator.vm('one');
    await host.operator.kill();
    const record = join(host.operator.state, 'vms', uid, 'record.json');
    const whole = readFileSync(record);
    writeFileSync(record, whole.subarray(0, 40));
    await host.operator.start();
    await host.operator.done('network', 'repair');
    expect(host.leases()).toMatchObject([{ address }]);
    await host.operator.kill();
    await renewed(address);
    expect(await host.page(address)).toMatch(/^tiny one /m);
    writeFileSync(record, whole);
    await host.operator.start();
  });

  it('leaves no tap and no lease when it is deleted, and the network then goes without it', async () => {
    await host.operator.done('vm', 'delete', 'one');
    await until(async () => (await host.operator.vms()).length === 0, BOOT);
    expect(await host.taps()).toEqual([]);
    expect(host.leases()).toEqual([]);
    await host.operator.stop();
    await host.operator.done('network', 'teardown', '--backend', 'qemu');
    expect((await host.rules()).trim()).toBe('');
    expect(await host.net.pids()).toEqual([]);
  });
});
