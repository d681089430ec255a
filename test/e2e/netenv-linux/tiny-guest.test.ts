/** A real guest of QEMU on the host's own network, with the host in a namespace. */
import { describe, expect, test } from 'vitest';
import type { VmInstance } from '@eitri/core/contracts';
import { qemuLab, type Agent } from '../../support/qemu/lab.js';
import { tinyGuest } from '../../support/guest.js';
import { supervisorOf } from '../../support/netenv/host.js';
import { WORLD, type NetenvLab } from '../../support/netenv/lab.js';
import { newLab, up } from '../../support/netenv/start.js';
import { consoleOf } from '../../support/qemu/guest-console.js';
import { calm } from '../../support/quiet.js';
import { until } from '../../support/until.js';

const GUEST_TIMEOUT_MS = 120_000;

const page = (lab: NetenvLab, address: string): Promise<string> => {
  const asked = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | socat -t 5 - TCP4:${address}:80,connect-timeout=2`;
  return until(() => lab.host.exec('sh', '-c', asked), { timeoutMs: GUEST_TIMEOUT_MS, everyMs: 200 });
};

async function ended(agent: Agent, vm: VmInstance): Promise<void> {
  await until(async () => (await agent.provisioner.observe(vm, calm())).state !== 'running', {
    timeoutMs: GUEST_TIMEOUT_MS,
  });
}

describe('a real guest on the network of its host', () => {
  test('it is leased its reservation, is reached there and reaches out, keeps it over a boot, and leaves nothing', async () => {
    const lab = await newLab();
    const net = await up(lab);
    const qemu = qemuLab();
    const agent = qemu.agent({
      guestNetwork: 'plugin',
      network: net.network,
      supervisor: supervisorOf(lab.host.name),
      qemu: { deviceExists: async (name) => (await lab.taps()).includes(name) },
    });
    const vm = qemu.vm(1, { image: await tinyGuest() });
    lab.records.add(vm.uid);
    lab.world.spawn('socat', 'TCP4-LISTEN:8080,fork', 'SYSTEM:echo seen as $SOCAT_PEERADDR');

    await agent.provisioner.boot(vm, calm());
    const address = (await agent.provisioner.address(vm, calm())) ?? '';
    const console = await consoleOf(agent, vm.uid);
    await console.seen(new RegExp(`eth0 ip=${address.replaceAll('.', '\\.')}`));
    expect(await page(lab, address)).toMatch(/^tiny /m);
    await console.seen(/login:/);
    console.type(`sh nc -w 5 ${WORLD} 8080 </dev/null`);
    await console.seen(/seen as 192\.0\.2\.2/);
    expect(await net.hostNetwork.repair(calm())).toEqual([]);

    await agent.provisioner.shutdown(vm, 'powerButton', calm());
    await ended(agent, vm);
    await agent.provisioner.boot(vm, calm());
    expect(await agent.provisioner.address(vm, calm())).toBe(address);
    expect(await page(lab, address)).toMatch(/^tiny /m);

    await agent.provisioner.destroy(vm, calm());
    expect(await lab.taps()).toEqual([]);
    expect(await net.network.address(vm.uid, calm())).toBeUndefined();
    await net.hostNetwork.teardown(calm());
    expect((await lab.ruleset()).trim()).toBe('');
    expect(await lab.dnsmasqPids()).toEqual([]);
  });
});
