import { chmodSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { VmInstance } from '@eitri/core/contracts';
import { qemuLab, type Agent } from '../../support/qemu/lab.js';
import { consoleOf, type GuestConsole } from '../../support/qemu/guest-console.js';
import { tinyGuest } from '../../support/guest.js';
import { until } from '../../support/until.js';

const signal = new AbortController().signal;
const GUEST_TIMEOUT_MS = 120_000;
const SECRET = 'secret of the host';

interface Guest {
  readonly agent: Agent;
  readonly vm: VmInstance;
  readonly console: GuestConsole;
}

/** A tiny guest at its prompt. */
async function atPrompt({ restricted = true } = {}): Promise<Guest> {
  const lab = qemuLab();
  const agent = lab.agent(restricted ? {} : { qemuBin: unrestrictedQemu(lab.folder) });
  const vm = lab.vm(1, { image: await tinyGuest() });
  await agent.provisioner.boot(vm, signal);
  const console = await consoleOf(agent, vm.uid);
  await console.seen(/login:/);
  return { agent, vm, console };
}

/** QEMU that is told what the agent tells it, but for the one word that shuts a guest off. */
function unrestrictedQemu(folder: string): string {
  const path = join(folder, 'unrestricted-qemu');
  writeFileSync(path, '#!/bin/bash\nexec qemu-system-x86_64 "${@/restrict=on/restrict=off}"\n');
  chmodSync(path, 0o755);
  return path;
}

const ended = ({ agent, vm }: Guest) =>
  until(
    async () => {
      const seen = await agent.provisioner.observe(vm, signal);
      return seen.state === 'exited' ? seen : undefined;
    },
    { timeoutMs: GUEST_TIMEOUT_MS },
  );

/** A server on the host's loopback that counts who comes. */
async function listener(): Promise<{ readonly port: number; readonly visits: () => number }> {
  let visits = 0;
  const server = createServer((connection) => {
    visits++;
    connection.on('error', () => undefined);
    connection.end(`${SECRET}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, visits: () => visits };
}

const fetchText = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/', agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    }).on('error', reject);
  });

describe('a real guest on QEMU', () => {
  test('it boots to its prompt with the disks and the NIC it was promised, and its power button ends QEMU with code 0', async () => {
    const guest = await atPrompt();
    const { agent, vm, console } = guest;
    expect(console.text()).toMatch(/disk \/dev\/vda bytes=1073741824 ro=0/);
    expect(console.text()).toMatch(/disk \/dev\/vdb bytes=1048576 ro=1/);
    expect(console.text()).toContain(`nic eth0 mac=${vm.mac}`);
    expect(await agent.provisioner.observe(vm, signal)).toMatchObject({ state: 'running' });

    expect(await agent.provisioner.shutdown(vm, 'powerButton', signal)).toBe('asked');
    expect(await ended(guest)).toEqual({ state: 'exited', code: 0 });
    expect(console.text()).toContain('tiny: clean');
    expect(await agent.provisioner.failureReason(vm, signal)).toBeUndefined();
  });

  test('its web server is reached through a published port', async () => {
    const { agent, vm, console } = await atPrompt();
    const free = await listener();
    const hostPort = await until(async () => {
      const exposure = { hostAddress: '127.0.0.1', hostPort: free.port + 1, guestPort: 80, protocol: 'tcp' } as const;
      const states = await agent.publisher?.publish(vm.uid, [exposure], signal);
      return states?.[0]?.state === 'published' ? exposure.hostPort : undefined;
    });
    await console.seen(/eth0 ip=10\.0\.2\.15/);
    expect(await until(() => fetchText(hostPort), { timeoutMs: GUEST_TIMEOUT_MS, everyMs: 200 })).toMatch(/^tiny /);
  });

  test('it asks a server on its host’s loopback, which QEMU would lead it to: it hears nothing, where a guest that is not shut off is answered', async () => {
    const server = await listener();
    // The gateway is on the guest's own subnet: no route is missing where this fails.
    const ask = async ({ console }: Guest): Promise<string> => {
      await console.seen(/eth0 ip=10\.0\.2\.15/);
      console.clear();
      console.type(`sh nc -w 5 10.0.2.2 ${server.port.toString()} </dev/null; echo nc=$?`);
      await console.seen(/nc=\d+\r?\n/);
      return console.text();
    };
    const shutOff = await ask(await atPrompt());
    expect(shutOff).toMatch(/nc=[1-9]/);
    expect(shutOff).not.toContain(SECRET);
    expect(server.visits()).toBe(0);

    const open = await ask(await atPrompt({ restricted: false }));
    expect(open).toContain(SECRET);
    expect(open).toContain('nc=0');
    expect(server.visits()).toBe(1);
  });

  test('it reboots itself: the VMM, its disk and its published ports stay', async () => {
    const { agent, vm, console } = await atPrompt();
    const before = await agent.provisioner.observe(vm, signal);
    console.clear();
    console.type('reboot');
    await console.seen(/boot-count=2[^]*login:/);
    expect(await agent.provisioner.observe(vm, signal)).toEqual(before);
  });

  test('its kernel panics and says so: QEMU ends as after a failure', async () => {
    const guest = await atPrompt();
    guest.console.type('panic');
    expect(await ended(guest)).toEqual({ state: 'exited', code: 1 });
  });

  test('its kernel panics and can’t say so: the power button does nothing, terminate ends it', async () => {
    const { agent, vm, console } = await atPrompt();
    console.type('sh rmmod pvpanic_pci');
    await console.seen(/rc=0/);
    console.type('panic');
    await console.seen(/Kernel panic/);
    expect(await agent.provisioner.shutdown(vm, 'powerButton', signal)).toBe('asked');
    expect(await agent.provisioner.observe(vm, signal)).toMatchObject({ state: 'running' });
    expect(await agent.provisioner.shutdown(vm, 'terminate', signal)).toBe('gone');
  });
});
