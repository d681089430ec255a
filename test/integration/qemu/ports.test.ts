import { createSocket } from 'node:dgram';
import { createServer, connect, type AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Exposure, PortPublisher, VmInstance } from '@eitri/core/contracts';
import { qemuLab, type Agent, type Lab } from '../../support/qemu/lab.js';
import { until } from '../../support/until.js';

const signal = new AbortController().signal;

/** A port that nobody holds now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  return port;
}

async function holdTcp(port: number): Promise<() => Promise<void>> {
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = async (): Promise<void> => {
    if (server.listening) await new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  onTestFinished(close);
  return close;
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

const tcp = (hostPort: number, guestPort = 80, hostAddress = '127.0.0.1'): Exposure => ({
  hostAddress,
  hostPort,
  guestPort,
  protocol: 'tcp',
});

function publisherOf(agent: Agent): PortPublisher {
  if (agent.publisher === undefined) throw new Error('no publisher');
  return agent.publisher;
}

async function running(): Promise<{ lab: Lab; agent: Agent; vm: VmInstance; publisher: PortPublisher }> {
  const lab = qemuLab();
  const agent = lab.agent();
  const vm = lab.vm(1);
  await agent.provisioner.boot(vm, signal);
  await until(async () => (await agent.provisioner.observe(vm, signal)).state === 'running');
  return { lab, agent, vm, publisher: publisherOf(agent) };
}

describe('ports of a guest on the user-mode network', () => {
  test('a port is declared, kept and taken back: QEMU listens on it just as long', async () => {
    const { vm, publisher } = await running();
    const port = await freePort();
    for (let i = 0; i < 3; i++) {
      expect(await publisher.publish(vm.uid, [tcp(port)], signal)).toEqual([
        { exposure: tcp(port), state: 'published' },
      ]);
    }
    expect(await accepts(port)).toBe(true);
    expect(await publisher.publish(vm.uid, [], signal)).toEqual([]);
    expect(await accepts(port)).toBe(false);
  });

  test('the list is declared again with one more: a connection through the one that stays lives on', async () => {
    const { vm, publisher } = await running();
    const port = await freePort();
    await publisher.publish(vm.uid, [tcp(port)], signal);
    const socket = connect({ port, host: '127.0.0.1' });
    let closed = false;
    socket.on('close', () => (closed = true)).on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    await new Promise<void>((resolve) => socket.once('connect', resolve));

    const more = await freePort();
    const states = await publisher.publish(vm.uid, [tcp(more, 81), tcp(port)], signal);
    expect(states.map((s) => s.state)).toEqual(['published', 'published']);
    expect(await accepts(more)).toBe(true);
    expect(closed).toBe(false);
  });

  test('the port leads to another port of the guest now: the old rule goes, the new one stands', async () => {
    const { vm, publisher } = await running();
    const port = await freePort();
    await publisher.publish(vm.uid, [tcp(port, 80)], signal);
    expect(await publisher.publish(vm.uid, [tcp(port, 81)], signal)).toEqual([
      { exposure: tcp(port, 81), state: 'published' },
    ]);
  });

  test('another process holds the port: it is busy, the others are published, and it follows when it is free', async () => {
    const { vm, publisher } = await running();
    const [taken, free] = [await freePort(), await freePort()];
    const letGo = await holdTcp(taken);
    const states = await publisher.publish(vm.uid, [tcp(taken), tcp(free)], signal);
    expect(states).toMatchObject([
      { state: 'busy', why: expect.stringContaining('held by another process') as string },
      { state: 'published' },
    ]);
    await letGo();
    expect((await publisher.publish(vm.uid, [tcp(taken), tcp(free)], signal)).map((s) => s.state)).toEqual([
      'published',
      'published',
    ]);
  });

  test("another guest's QEMU holds the port, tcp or udp: the second guest is told that it is busy", async () => {
    const { lab, agent, vm, publisher } = await running();
    const other = lab.vm(2);
    await agent.provisioner.boot(other, signal);
    const port = await freePort();
    const both: readonly Exposure[] = [tcp(port), { ...tcp(port), protocol: 'udp' }];
    expect((await publisher.publish(vm.uid, both, signal)).map((s) => s.state)).toEqual(['published', 'published']);
    expect((await publisher.publish(other.uid, both, signal)).map((s) => s.state)).toEqual(['busy', 'busy']);
  });

  test('udp is published on the host’s side: the port is taken', async () => {
    const { vm, publisher } = await running();
    const port = await freePort();
    const exposure: Exposure = { ...tcp(port, 53), protocol: 'udp' };
    expect(await publisher.publish(vm.uid, [exposure], signal)).toMatchObject([{ state: 'published' }]);
    const socket = createSocket('udp4');
    onTestFinished(() => void socket.close());
    const code = await new Promise((resolve) => {
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      socket.bind(port, '127.0.0.1', () => resolve('bound'));
    });
    expect(code).toBe('EADDRINUSE');
  });

  test('all addresses of the host are asked for: it is published, and is found again as the same', async () => {
    const { lab, vm, publisher } = await running();
    const port = await freePort();
    const exposure = tcp(port, 80, '0.0.0.0');
    await publisher.publish(vm.uid, [exposure], signal);
    expect(await publisherOf(lab.agent()).publish(vm.uid, [exposure], signal)).toEqual([
      { exposure, state: 'published' },
    ]);
  });

  test('what this host can’t publish is refused with its reason, each in its place', async () => {
    const { vm, publisher } = await running();
    const port = await freePort();
    const states = await publisher.publish(
      vm.uid,
      [tcp(port, 80, '::1'), tcp(port), tcp(port, 81), tcp(port, 80, '192.0.2.1'), { ...tcp(67), protocol: 'udp' }],
      signal,
    );
    expect(states.map((s) => s.state)).toEqual(['refused', 'published', 'refused', 'refused', 'refused']);
    expect(states.map((s) => ('why' in s ? s.why : ''))).toEqual([
      expect.stringContaining('not an IPv4 address'),
      '',
      expect.stringContaining('declared twice'),
      expect.stringContaining('not an address of this host'),
      expect.stringContaining('DHCP'),
    ]);
  });

  test('the agent is restarted: the new one takes back what its predecessor published and nobody wants', async () => {
    const { lab, vm, publisher } = await running();
    const [old, kept] = [await freePort(), await freePort()];
    await publisher.publish(vm.uid, [tcp(old), tcp(kept)], signal);
    await publisherOf(lab.agent()).publish(vm.uid, [tcp(kept)], signal);
    expect(await accepts(old)).toBe(false);
    expect(await accepts(kept)).toBe(true);
  });

  test('all are released, and released again when the guest is gone', async () => {
    const { agent, vm, publisher } = await running();
    const port = await freePort();
    await publisher.publish(vm.uid, [tcp(port)], signal);
    await publisher.release(vm.uid, signal);
    expect(await accepts(port)).toBe(false);
    await publisher.publish(vm.uid, [tcp(port)], signal);
    await agent.provisioner.destroy(vm, signal);
    expect(await accepts(port)).toBe(false);
    await publisher.release(vm.uid, signal);
  });

  test('the guest does not run: publishing rejects, for nothing could be found out', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await expect(publisherOf(agent).publish(vm.uid, [tcp(1)], signal)).rejects.toThrow(/qmp/);
  });
});
