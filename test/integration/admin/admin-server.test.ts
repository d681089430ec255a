import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { spawnSync } from 'node:child_process';
import type { VmId } from '@eitri/core/contracts';
import { isPermanent } from '@eitri/core/kit';
import type { EventView } from '@eitri/protocol';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AdminClient, ClientError } from '../../../src/client/index.js';
import type { ConsoleSession } from '../../../src/client/index.js';
import { OperatorApi } from '../../support/operator-api.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const kindOf = (error: unknown): string | undefined => (error instanceof ClientError ? error.kind : undefined);

/** Collects what a stream gives. */
function collect(stream: Readable): { text: () => string; length: () => number; ended: () => boolean } {
  const chunks: Buffer[] = [];
  let ended = false;
  let length = 0;
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
  });
  stream.once('end', () => (ended = true));
  stream.on('error', () => (ended = true));
  return { text: () => Buffer.concat(chunks).toString('utf8'), length: () => length, ended: () => ended };
}

const look = { write: false, force: false, backlog: true, who: 'tester' };
const type = { ...look, write: true };

describe('the operator API', () => {
  it('lists VMs and shows one, by name and by uid, with times in ISO 8601', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    api.world.want('web-2', { power: 'stopped' });
    await api.world.untilPhase('web-2', 'Stopped');
    const client = api.client();
    const vms = await client.vms(api.signal);
    expect(vms.map((vm) => [vm.id, vm.phase, vm.wanted])).toEqual([
      ['web-1', 'Running', 'running'],
      ['web-2', 'Stopped', 'stopped'],
    ]);
    const vm = await client.vm('web-1', api.signal);
    expect(vm).toMatchObject({ uid, id: 'web-1', boots: 1, attempts: 0, desiredSpec: { cpus: 1 }, spec: { cpus: 1 } });
    expect(vm.startedAt).toMatch(/^2026-01-01T00:\d\d:\d\d\.\d{3}Z$/);
    expect(vm.paths?.serialLog).toBe(api.pathsOf(uid).serialLog);
    expect(vm.prepared).toMatchObject({ disk: true, seed: true });
    expect((await client.vm(uid, api.signal)).id).toBe('web-1');
  });

  it('says how the agent does', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    api.world.want('web-2', { power: 'stopped', cpus: 4 });
    await api.world.untilPhase('web-2', 'Stopped');
    const status = await api.client().status(api.signal);
    expect(status).toMatchObject({
      version: '1.2.3',
      pid: process.pid,
      startedAt: '2026-01-02T03:04:05.000Z',
      backend: { name: 'fake', notes: ['guests live in memory'] },
      controlPlane: { description: 'local folder /etc/eitri', inContact: true, lineage: 'test', epoch: 1 },
      issues: [{ source: 'bad.yaml', line: 3 }],
      vms: { total: 2, byPhase: { Running: 1, Stopped: 1 } },
      capacity: { held: { vcpus: 1, memoryMib: 256 }, caps: { vcpus: 8 } },
    });
  });

  it('is asked for an unknown VM: says which name is near', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    const error = await failureOf(api.client().vm('wbe-1', api.signal));
    expect(kindOf(error)).toBe('notFound');
    expect(String(error)).toContain('no VM is called "wbe-1"; did you mean web-1?');
  });

  it.each(['../x', '..', 'a/b', '%2e%2e', 'x'.repeat(150)])('is asked for the VM %s: there is none', async (name) => {
    const api = await OperatorApi.open();
    expect(kindOf(await failureOf(api.client().vm(name, api.signal)))).toBe('notFound');
    expect(kindOf(await failureOf(api.client().stop(name, api.signal)))).toBe('notFound');
  });

  it('stops and starts a VM, says what it changed, and says so when nothing was to change', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    const client = api.client();
    expect(await client.stop('web-1', api.signal)).toEqual({
      uid,
      id: 'web-1',
      changed: true,
      message: 'web-1 is declared stopped now (web-1.yaml)',
      files: ['web-1.yaml'],
    });
    await api.world.untilPhase('web-1', 'Stopped');
    expect(await client.stop(uid, api.signal)).toMatchObject({ changed: false });
    expect(await client.start('web-1', api.signal)).toMatchObject({ changed: true });
    await api.world.untilPhase('web-1', 'Running');
  });

  it('deletes a VM and takes it back', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    const client = api.client();
    expect(await client.remove('web-1', api.signal)).toMatchObject({ changed: true, files: ['.deleted/web-1.yaml'] });
    expect((await client.vm('web-1', api.signal)).wanted).toBe('deleted');
    expect(await client.undelete('web-1', api.signal)).toMatchObject({ changed: true });
    expect((await client.vm('web-1', api.signal)).wanted).toBe('running');
  });

  it('is asked to delete a life that nobody declares, by its uid: refuses, and its namesake is untouched', async () => {
    const api = await OperatorApi.open();
    const old = await api.running('web-1');
    await api.world.desired.settled(old);
    const now = await api.running('web-1');
    expect(now).not.toBe(old);
    await expect(api.client().remove(old, api.signal)).rejects.toThrow('not the VM that is declared as web-1');
    await api.client().stop('web-1', api.signal);
    await api.world.until(() => api.world.host.vmm(now) === undefined);
    expect(api.world.host.vmm(old)).toBeDefined();
    expect(api.world.desired.current()?.lives.map((life) => life.kind)).toEqual(['present']);
  });

  it('takes manifests, also large ones, and says where they stand, or what is wrong with them', async () => {
    const api = await OperatorApi.open();
    const client = api.client();
    const large = `# ${'x'.repeat(1024 * 1024)}`;
    expect(await client.write(large, 'create', api.signal)).toEqual({
      changed: true,
      message: 'web-1 (web-1.yaml) is declared now',
      vms: [{ id: 'web-1', file: 'web-1.yaml' }],
    });
    await client.write('text', 'apply', api.signal);
    expect(api.written).toEqual([
      { mode: 'create', text: large },
      { mode: 'apply', text: 'text' },
    ]);
    const error = await failureOf(client.write('bad', 'create', api.signal));
    expect(kindOf(error)).toBe('invalid');
    expect(String(error)).toContain('input:1: bad: mend it');
    const endless = await failureOf(client.write('x'.repeat(4 * 2 ** 20 + 1), 'create', api.signal));
    expect(kindOf(endless)).toBe('invalid');
    expect(api.written).toHaveLength(3);
  });

  it('lets go of held VMs once, and says whom', async () => {
    const api = await OperatorApi.open();
    api.held.push('c' as VmId, 'd' as VmId);
    expect(await api.client().releaseHolds(api.signal)).toMatchObject({ released: ['c', 'd'] });
    expect(await api.client().releaseHolds(api.signal)).toEqual({ released: [], message: 'no VM is held' });
  });

  it("repairs the guests' network, and says what it put right, or what it could not", async () => {
    const api = await OperatorApi.open();
    api.drifts.push('eitri0 was gone and is there again', 'dnsmasq was started');
    expect(await api.client().repairNetwork(api.signal)).toEqual({
      mended: ['eitri0 was gone and is there again', 'dnsmasq was started'],
      message: 'eitri0 was gone and is there again\ndnsmasq was started',
    });
    expect(await api.client().repairNetwork(api.signal)).toEqual({
      mended: [],
      message: "the guests' network is as it should be",
    });
    api.drifts.push(new Error('port 67 is taken'));
    const error = await failureOf(api.client().repairNetwork(api.signal));
    expect(kindOf(error)).toBe('unavailable');
    expect(String(error)).toContain('could not be put right: port 67 is taken');
  });

  it('has no network to repair where each guest has one of its own: says so', async () => {
    const api = await OperatorApi.open({ networked: false });
    expect(kindOf(await failureOf(api.client().repairNetwork(api.signal)))).toBe('unavailable');
  });

  it('is asked to act on the socket that is to look only: refuses, and nothing changes', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    // A client that takes the reading socket for the acting one.
    const folder = tempFolder();
    symlinkSync(join(api.runDir, 'admin.sock'), join(folder, 'act.sock'));
    const client = api.client(folder);
    expect(kindOf(await failureOf(client.stop('web-1', api.signal)))).toBe('notPermitted');
    expect(kindOf(await failureOf(client.remove('web-1', api.signal)))).toBe('notPermitted');
    expect(kindOf(await failureOf(client.write('text', 'apply', api.signal)))).toBe('notPermitted');
    expect(kindOf(await failureOf(client.releaseHolds(api.signal)))).toBe('notPermitted');
    expect(kindOf(await failureOf(client.repairNetwork(api.signal)))).toBe('notPermitted');
    expect(api.written).toEqual([]);
    expect(kindOf(await failureOf(client.console('web-1', type, api.signal)))).toBe('notPermitted');
    expect((await api.client().vm('web-1', api.signal)).wanted).toBe('running');
  });
});

describe('the sockets', () => {
  it('have their modes: one for the group to look, one for the agent’s user to act', async () => {
    const { runDir } = await OperatorApi.open();
    expect(statSync(join(runDir, 'admin.sock')).mode & 0o777).toBe(0o660);
    expect(statSync(join(runDir, 'act.sock')).mode & 0o777).toBe(0o600);
    // Nothing of how they were made is left, neither there nor beside it.
    expect(readdirSync(runDir).sort()).toEqual(['act.sock', 'admin.sock']);
    expect(readdirSync(dirname(runDir)).filter((name) => name.startsWith(basename(runDir)))).toEqual([
      basename(runDir),
    ]);
  });

  it('are opened to another user only as far as their modes let: the client says who may', async () => {
    const api = await OperatorApi.open();
    // The kernel lets root in everywhere: somebody else has to knock.
    const script = `require('node:net').connect(${JSON.stringify(join(api.runDir, 'act.sock'))}).on('error', (e) => { console.log(e.code); })`;
    spawnSync('chmod', ['711', api.runDir]);
    const asNobody = spawnSync(process.execPath, ['-e', script], { uid: 65534, gid: 65534, encoding: 'utf8' });
    expect(asNobody.stdout.trim()).toBe('EACCES');
  });

  it('are left by an agent that died: the next agent replaces them', async () => {
    const runDir = tempFolder();
    const script = `require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', script, join(runDir, 'admin.sock')]);
    expect(existsSync(join(runDir, 'admin.sock'))).toBe(true);
    // It may have died while a socket was born, too; a guest's folder beside is not its to sweep.
    mkdirSync(join(runDir, '.aB3dE5g'));
    mkdirSync(join(runDir, 'abcdef012345'));
    const api = await OperatorApi.open({ runDir });
    expect((await api.client().status(api.signal)).version).toBe('1.2.3');
    expect(readdirSync(runDir).sort()).toEqual(['abcdef012345', 'act.sock', 'admin.sock']);
  });

  it('are somebody’s who answers: a second agent is refused and takes nothing away', async () => {
    const api = await OperatorApi.open();
    const error = await failureOf(api.makeServer().start());
    expect(isPermanent(error)).toBe(true);
    expect(String(error)).toContain('another agent answers on');
    expect(String(error)).toContain('--run-dir');
    expect((await api.client().status(api.signal)).version).toBe('1.2.3');
  });

  it('find a file in their way: refuse, and leave it', async () => {
    const api = await OperatorApi.open();
    await api.server.close(1_000);
    writeFileSync(join(api.runDir, 'act.sock'), 'mine');
    const error = await failureOf(api.makeServer().start());
    expect(String(error)).toContain('is in the way');
    expect(readFileSync(join(api.runDir, 'act.sock'), 'utf8')).toBe('mine');
    // The other one, which was opened before, is closed again.
    expect(existsSync(join(api.runDir, 'admin.sock'))).toBe(false);
  });

  it('would have too long a path: refused before Node cuts it, by server and client', async () => {
    const runDir = join(tempFolder(), 'd'.repeat(100));
    spawnSync('mkdir', ['-p', runDir]);
    await expect(OperatorApi.open({ runDir })).rejects.toThrow(/shorter --run-dir/);
    const client = new AdminClient({ runDir });
    onTestFinished(() => client.close());
    expect(String(await failureOf(client.status(new AbortController().signal)))).toContain('shorter --run-dir');
  });

  it('are gone after the end, but for one that somebody else put there meanwhile', async () => {
    const api = await OperatorApi.open();
    const other = createServer();
    onTestFinished(() => void other.close());
    const aside = join(api.runDir, 'other');
    await new Promise<void>((resolve) => other.listen(aside, resolve));
    renameSync(aside, join(api.runDir, 'admin.sock'));
    await api.server.close(1_000);
    expect(existsSync(join(api.runDir, 'act.sock'))).toBe(false);
    expect(existsSync(join(api.runDir, 'admin.sock'))).toBe(true);
  });
});

describe('a client without an agent', () => {
  it('says which socket nobody answers on, and how to start one', async () => {
    const runDir = tempFolder();
    const client = new AdminClient({ runDir });
    onTestFinished(() => client.close());
    const error = await failureOf(client.vms(new AbortController().signal));
    expect(kindOf(error)).toBe('unreachable');
    expect(String(error)).toContain(`no agent answers on ${runDir}/admin.sock: start it with "eitri-agent run"`);
    expect(kindOf(await failureOf(client.console('web-1', look, new AbortController().signal)))).toBe('unreachable');
  });

  it('meets one that dies within its answer: unreachable, not a hang', async () => {
    const runDir = tempFolder();
    const server = createServer((socket) => socket.destroy());
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(join(runDir, 'admin.sock'), resolve));
    const client = new AdminClient({ runDir });
    onTestFinished(() => client.close());
    expect(kindOf(await failureOf(client.vms(new AbortController().signal)))).toBe('unreachable');
  });
});

describe('events', () => {
  const follow = (api: OperatorApi, vm?: string) => {
    const seen: EventView[] = [];
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    const client = api.client();
    const done = (async () => {
      for await (const event of client.events(vm, true, leaving.signal)) seen.push(event);
    })().catch(() => undefined);
    return { seen, leaving, done };
  };

  it('that were kept come first, then each as it happens, for one VM or all', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    const all = follow(api);
    const one = follow(api, 'web-1');
    await until(() => all.seen.some((event) => event.type === 'vm.booted'));
    api.world.want('web-2');
    await api.world.untilPhase('web-2', 'Running');
    api.agent.events.emit({ type: 'vm.marker', level: 'info', uid, id: all.seen[0]?.id as never, message: 'here' });
    await until(() => one.seen.at(-1)?.type === 'vm.marker');
    await until(() => all.seen.some((event) => event.id === 'web-2' && event.type === 'vm.booted'));
    expect(one.seen.every((event) => event.uid === uid)).toBe(true);
    expect(all.seen.map((event) => event.seq)).toEqual([...all.seen.map((event) => event.seq)].sort((a, b) => a - b));
  });

  it('are not followed: the answer ends', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    const seen: EventView[] = [];
    for await (const event of api.client().events(undefined, false, api.signal)) seen.push(event);
    expect(seen.map((event) => event.type)).toContain('vm.booted');
  });

  it('are followed by somebody who never reads: who is let go, and others see all of them', async () => {
    const api = await OperatorApi.open();
    const slow = await rawRequest(api.runDir, 'GET /v1/events?follow=1 HTTP/1.1');
    slow.pause();
    const good = follow(api);
    await until(() => {
      api.agent.events.emit({ type: 'probe', level: 'info', message: 'probe' });
      return good.seen.length > 0;
    });
    const padding = 'x'.repeat(60_000);
    const messages: string[] = [];
    // Far more than the kernel and the limit hold together; the good reader sets the pace.
    for (let sent = 0; sent < 200; sent++) {
      messages.push(`${sent} ${padding}`);
      api.agent.events.emit({ type: 'flood', level: 'info', message: `${sent} ${padding}` });
      await until(() => good.seen.at(-1)?.message.startsWith(`${sent} `), { everyMs: 1 });
    }
    expect(good.seen.filter((event) => event.type === 'flood').map((event) => event.message)).toEqual(messages);
    slow.resume();
    await until(() => slow.destroyed);
  });

  it('are followed by too many: the next is told so', async () => {
    const api = await OperatorApi.open();
    const sockets = await Promise.all(
      Array.from({ length: 48 }, () => rawRequest(api.runDir, 'GET /v1/events?follow=1 HTTP/1.1')),
    );
    expect(kindOf(await failureOf(api.client().events(undefined, true, api.signal).next()))).toBe('busy');
    // Who leaves makes room.
    sockets[0]?.destroy();
    const leaving = new AbortController();
    onTestFinished(() => leaving.abort());
    await until(async () => {
      api.agent.events.emit({ type: 'probe', level: 'info', message: 'probe' });
      return (await api.client().events(undefined, true, leaving.signal).next()).value as EventView | undefined;
    });
  });
});

describe('logs', () => {
  it('of a stopped VM are there, the last lines on request, over the rotated file', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    await api.client().stop('web-1', api.signal);
    await api.world.untilPhase('web-1', 'Stopped');
    await api.consoles.stop(uid);
    const { serialLog, vmmLog } = api.pathsOf(uid);
    writeFileSync(`${serialLog}.1`, 'one\ntwo\n');
    writeFileSync(serialLog, 'three\nfour\n');
    writeFileSync(vmmLog, 'vmm says\n');
    const read = async (options: { which: 'serial' | 'vmm'; lines?: number }) => {
      const log = collect(await api.client().logs('web-1', { ...options, follow: false }, api.signal));
      await until(() => log.ended());
      return log.text();
    };
    expect(await read({ which: 'serial' })).toBe('one\ntwo\nthree\nfour\n');
    expect(await read({ which: 'serial', lines: 3 })).toBe('two\nthree\nfour\n');
    expect(await read({ which: 'serial', lines: 0 })).toBe('');
    expect(await read({ which: 'vmm' })).toBe('vmm says\n');
  });

  it('of a VM that never wrote any are empty', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    const log = collect(await api.client().logs('web-1', { which: 'vmm', follow: false }, api.signal));
    await until(() => log.ended());
    expect(log.text()).toBe('');
  });

  it('are followed over a rotation: every byte comes once', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    const { vmmLog } = api.pathsOf(uid);
    writeFileSync(vmmLog, 'a\n');
    const leaving = new AbortController();
    const log = collect(await api.client().logs('web-1', { which: 'vmm', follow: true }, leaving.signal));
    await until(() => log.text() === 'a\n');
    appendFileSync(vmmLog, 'b\n');
    await until(() => log.text() === 'a\nb\n');
    appendFileSync(vmmLog, 'c\n');
    renameSync(vmmLog, `${vmmLog}.1`);
    writeFileSync(vmmLog, 'd\n');
    await until(() => log.text().endsWith('d\n'));
    expect(log.text()).toBe('a\nb\nc\nd\n');
    leaving.abort();
    await until(() => log.ended());
  });
});

describe('a console', () => {
  const attach = async (api: OperatorApi, options: typeof look, name = 'web-1') => {
    const session: ConsoleSession = await api.client().console(name, options, api.signal);
    onTestFinished(() => session.leave());
    return { session, seen: collect(session.output) };
  };

  it('shows the history first, then what is printed, and types what is written', async () => {
    const api = await OperatorApi.open();
    const line = api.lines.line(await api.running('web-1'));
    await until(() => line.connected === 1);
    line.print('login: ');
    const { session, seen } = await attach(api, type);
    await until(() => seen.text() === 'login: ');
    line.print('again ');
    await until(() => seen.text() === 'login: again ');
    await session.type(Buffer.from('root\r'));
    await until(() => line.typed().toString() === 'root\r');
  });

  it('is opened to look by many, on the socket to look, and to type by one', async () => {
    const api = await OperatorApi.open();
    const line = api.lines.line(await api.running('web-1'));
    await until(() => line.connected === 1);
    const first = await attach(api, { ...type, who: 'ann' });
    const second = await attach(api, look);
    const error = await failureOf(attach(api, type));
    expect(kindOf(error)).toBe('conflict');
    expect(String(error)).toContain('ann is typing on this console already');
    const third = await attach(api, { ...type, force: true, who: 'bob' });
    expect(await first.session.ended).toEqual({ reason: 'taken over', by: 'bob' });
    line.print('all see this');
    await until(() => second.seen.text() === 'all see this' && third.seen.text() === 'all see this');
    await third.session.type(Buffer.from('x'));
    await until(() => line.typed().toString() === 'x');
  });

  it('ends with its guest: the last output comes, and then why', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    const line = api.lines.line(uid);
    await until(() => line.connected === 1);
    const { session, seen } = await attach(api, look);
    line.print('Power down\r\n');
    line.gone();
    await api.consoles.stop(uid);
    expect(await session.ended).toEqual({ reason: 'stopped' });
    await until(() => seen.ended());
    expect(seen.text()).toBe('Power down\r\n');
  });

  it('is typed into by one who half-closes: who still sees what comes of it', async () => {
    const api = await OperatorApi.open();
    const line = api.lines.line(await api.running('web-1'));
    await until(() => line.connected === 1);
    const { session, seen } = await attach(api, type);
    await session.type(Buffer.from('reboot\r'));
    session.endTyping();
    await until(() => line.typed().toString() === 'reboot\r');
    line.print('restarting');
    await until(() => seen.text() === 'restarting');
    // The keyboard is free again.
    await until(async () => {
      await attach(api, type);
      return true;
    });
  });

  it('is left unread by one viewer: that one is dropped, the others and the guest go on', async () => {
    const api = await OperatorApi.open();
    const line = api.lines.line(await api.running('web-1'));
    await until(() => line.connected === 1);
    const slow = await rawRequest(
      api.runDir,
      'GET /v1/vms/web-1/console HTTP/1.1',
      'Connection: Upgrade\r\nUpgrade: eitri-console\r\n',
    );
    slow.pause();
    const good = await attach(api, look);
    const part = Buffer.alloc(64 * 1024, 'x');
    let length = 0;
    for (let sent = 0; sent < 200; sent++) {
      line.print(part);
      length += part.length;
      await until(() => good.seen.length() === length, { everyMs: 1 });
    }
    slow.resume();
    await until(() => slow.destroyed);
    line.print('still here');
    await until(() => good.seen.text().endsWith('still here'));
  });

  it('of a VM that is not running is refused with its state', async () => {
    const api = await OperatorApi.open();
    api.world.want('web-2', { power: 'stopped' });
    await api.world.untilPhase('web-2', 'Stopped');
    const error = await failureOf(attach(api, look, 'web-2'));
    expect(kindOf(error)).toBe('unavailable');
    expect(String(error)).toContain('web-2 has no console now: it is Stopped');
  });
});

describe('the end of the agent', () => {
  it('ends followers and consoles with a reason, within its deadline', async () => {
    const api = await OperatorApi.open();
    const line = api.lines.line(await api.running('web-1'));
    await until(() => line.connected === 1);
    const session = await api.client().console('web-1', look, api.signal);
    const events = api.client().events(undefined, true, api.signal);
    await events.next();
    const rest = (async () => {
      let last = await events.next();
      while (last.done !== true) last = await events.next();
      return 'ended';
    })();
    const stuck = await rawRequest(api.runDir, 'GET /v1/vms HTTP/1.1', '', false);
    const before = performance.now();
    await api.server.close(500);
    expect(performance.now() - before).toBeLessThan(5_000);
    expect(await session.ended).toEqual({ reason: 'stopped' });
    expect(await rest).toBe('ended');
    stuck.resume();
    await until(() => stuck.destroyed);
  });
});

/** A client that does what ours never would. `whole: false` leaves the request's head unfinished. */
async function rawRequest(runDir: string, line: string, headers = '', whole = true): Promise<Socket> {
  const socket = connect(join(runDir, 'admin.sock'));
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  socket.write(`${line}\r\nHost: agent\r\n${headers}${whole ? '\r\n' : ''}`);
  if (whole) await new Promise<void>((resolve) => socket.once('readable', resolve));
  return socket;
}
