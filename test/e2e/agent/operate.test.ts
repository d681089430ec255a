/**
 * Days of an operator with one host, told by the commands alone: guests come up, manifests break and are mended, ports
 * change, the agent dies, guests stop, start, power off and are deleted. The tests follow on each other: each one stands on
 * the guests that those before it brought up.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { VmView } from '@eitri/protocol';
import { banners, bootCounts, prompt, tinyManifest, type TinyVm } from '../../support/guests.js';
import { BOOT, Operator } from '../../support/operator.js';
import { isAlive, processesNaming } from '../../support/processes.js';
import { freePort, listens } from '../../support/tcp.js';
import { until } from '../../support/until.js';

const run = promisify(execFile);
const operator = new Operator();
afterAll(() => operator.remove());

const key = join(operator.folder, 'key');
const ports = { http: 0, ssh: 0, moved: 0 };
let one: TinyVm;

/** Pids of the guests that run, by name. */
const pids = async (): Promise<Readonly<Record<string, number | undefined>>> =>
  Object.fromEntries((await operator.vms()).map(({ id, pid }) => [id, pid]));

const page = async (port: number): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${String(port)}/`, { signal: AbortSignal.timeout(20_000) });
  return await response.text();
};

const sshOptions = (knownHosts: string): readonly string[] => [
  ...['-i', key, '-p', String(ports.ssh), '-o', `UserKnownHostsFile=${knownHosts}`, '-o', 'StrictHostKeyChecking=yes'],
  ...['-o', 'HostKeyAlgorithms=ssh-ed25519', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=30', '-F', 'none'],
];

/** A file of host keys as the agent tells them. */
function knownHosts(vm: VmView): string {
  const file = join(operator.folder, 'known_hosts');
  writeFileSync(file, vm.hostKeys.map((hostKey) => `[127.0.0.1]:${String(ports.ssh)} ${hostKey}\n`).join(''));
  return file;
}

beforeAll(async () => {
  ports.http = await freePort();
  ports.ssh = await freePort();
  ports.moved = await freePort();
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'operator', '-f', key]);
  one = {
    name: 'one',
    sshKey: readFileSync(`${key}.pub`, 'utf8').trim(),
    ports: [
      [ports.http, 80],
      [ports.ssh, 22],
    ],
  };
  await operator.init();
});

describe('a folder with two good manifests and one whose image is missing', () => {
  it('boots the good ones to their prompts, and says in the listing and in status what is wrong with the other', async () => {
    operator.put('one.yaml', await tinyManifest(one));
    operator.put('two.yaml', await tinyManifest({ name: 'two', volume: 'ledger' }));
    operator.put('three.yaml', await tinyManifest({ name: 'three', image: '/nowhere/three.raw' }));
    await operator.start();
    const three = await operator.untilVm('three', ({ phase }) => phase === 'Failed');
    expect(three.reason).toBe('ImageNotFound');
    expect(three.message).toContain('/nowhere/three.raw');
    for (const name of ['one', 'two']) {
      await operator.untilPrinted(name, prompt(name));
      expect((await operator.vm(name)).phase).toBe('Running');
    }
    const listed = (await operator.vms()).map(({ id, phase, reason }) => ({ id, phase, reason }));
    expect(listed).toEqual([
      { id: 'one', phase: 'Running', reason: undefined },
      { id: 'three', phase: 'Failed', reason: 'ImageNotFound' },
      { id: 'two', phase: 'Running', reason: undefined },
    ]);
    expect((await operator.status()).vms.byPhase).toEqual({ Running: 2, Failed: 1 });
    expect(await operator.done('status')).toMatch(/1 failed/i);
  });
});

describe('a running guest', () => {
  it('is who its seed says, and has its volume as /dev/vdc in the declared size', async () => {
    const log = await operator.logs('two');
    const { uid } = await operator.vm('two');
    expect(log).toContain(`tiny: seed=ok source=/dev/vdb`);
    expect(log).toContain(`instance-id=${uid} hostname=two`);
    expect(log).toMatch(/tiny: disk \/dev\/vdc bytes=2147483648 ro=0/);
    expect(log).toMatch(/boot-count=1 gpt=ok .*grow=done/);
    const console = await operator.console('two');
    await console.ask('sh printf the-ledger | dd of=/dev/vdc conv=fsync 2>/dev/null', /rc=0/);
    await console.leave();
  });

  it('lets in the holder of the declared key, and shows the host key that the agent told', async () => {
    const vm = await operator.vm('one');
    expect(vm.hostKeys).toHaveLength(1);
    const words = [...sshOptions(knownHosts(vm)), 'root@127.0.0.1', 'hostname'];
    const { stdout } = await until(() => run('ssh', words, { timeout: 60_000 }), BOOT);
    expect(stdout).toBe('one\n');
  });

  it('whose exposures change serves on the new port, closes the old one, and keeps a connection on an unchanged one', async () => {
    await until(async () => (await page(ports.http)).startsWith('tiny one '), BOOT);
    const words = [...sshOptions(knownHosts(await operator.vm('one'))), 'root@127.0.0.1', 'cat'];
    const session = spawn('ssh', words, { stdio: ['pipe', 'pipe', 'ignore'] });
    let heard = '';
    session.stdout.setEncoding('utf8').on('data', (chunk: string) => (heard += chunk));
    try {
      session.stdin.write('before\n');
      await until(() => heard === 'before\n', BOOT);
      one = {
        ...one,
        ports: [
          [ports.moved, 80],
          [ports.ssh, 22],
        ],
      };
      operator.put('one.yaml', await tinyManifest(one));
      await until(async () => (await page(ports.moved)).startsWith('tiny one '), BOOT);
      await until(async () => !(await listens(ports.http)), BOOT);
      session.stdin.write('after\n');
      await until(() => heard === 'before\nafter\n', BOOT);
    } finally {
      const ended = once(session, 'exit');
      session.kill('SIGKILL');
      await ended;
    }
    const { ports: shown } = await operator.vm('one');
    expect(shown.map(({ exposure, state }) => [exposure.hostPort, state])).toEqual([
      [ports.moved, 'published'],
      [ports.ssh, 'published'],
    ]);
  });
});

describe('a manifest', () => {
  it('that was written only half is told with file and line; its VM runs on, and nothing else is touched', async () => {
    const before = await pids();
    const whole = operator.read('one.yaml');
    operator.put('one.yaml', `${whole.slice(0, whole.indexOf('  image:'))}  image: {url: "file:///half`);
    const issue = await until(async () => (await operator.status()).issues[0], BOOT);
    expect(issue.source).toMatch(/one\.yaml$/);
    expect(issue.line).toBeGreaterThan(1);
    expect(await operator.done('status')).toContain(`one.yaml:${String(issue.line)}`);
    expect(await pids()).toEqual(before);
    expect((await operator.vm('one')).phase).toBe('Running');
    operator.put('one.yaml', whole);
    await until(async () => (await operator.status()).issues.length === 0, BOOT);
    expect(await pids()).toEqual(before);
  });
});

describe('a second agent on the same state directory', () => {
  it('is refused with the pid of the first, and no guest notices', async () => {
    const before = await pids();
    const { code, stderr } = await operator.refused();
    expect(code).toBe(75);
    expect(stderr).toContain(String(operator.agentPid));
    expect(await pids()).toEqual(before);
    expect(isAlive(operator.agentPid)).toBe(true);
  });
});

describe('an agent that is killed', () => {
  it('finds its guests again at its next start: same processes, the whole history and none of it twice, consoles that answer', async () => {
    const before = await pids();
    const watching = await operator.console('one');
    await operator.kill();
    expect(isAlive(before['one'] ?? 0)).toBe(true);
    await watching.leave();
    await operator.start();
    await operator.untilVm('one', ({ phase }) => phase === 'Running');
    expect(await pids()).toEqual(before);
    expect(processesNaming(`${operator.folder}/`, 'qmp').length).toBe(2);
    const console = await operator.console('one', { backlog: true });
    // What was printed under the agent that died is shown first, and once.
    await console.expect(/--- eitri: console reopened at .*, output in between may be missing ---/);
    expect(banners(console.shown)).toBe(1);
    await console.ask('echo back-again', /back-again\r?\n/);
    await console.leave();
    const log = await operator.logs('one');
    expect(banners(log)).toBe(1);
    expect(log).toContain('back-again');
    // The port is the VMM's own and outlives the agent; the new agent knows it as published.
    await operator.untilVm(
      'one',
      (vm) => vm.ports.every(({ state }) => state === 'published') && vm.ports.length === 2,
    );
    expect(await page(ports.moved)).toContain('tiny one ');
  });
});

describe('a VM', () => {
  it('that is stopped powers off cleanly, keeps its disk, and boots from it when it is started again', async () => {
    const { paths } = await operator.vm('one');
    const disk = statSync(paths?.rootDisk ?? '').ino;
    await operator.done('vm', 'stop', 'one', '--wait');
    expect(operator.read('one.yaml')).toContain('power: stopped');
    expect(operator.read('one.yaml')).toContain('# one: edited by hand');
    const stopped = await operator.vm('one');
    // Its exit code is nobody's to learn: the agent that was its parent is dead.
    expect(stopped).toMatchObject({ phase: 'Stopped', lastExit: { cause: 'stop' } });
    expect(stopped.pid).toBeUndefined();
    expect(await operator.logs('one')).toMatch(/tiny: power button[\s\S]*tiny: clean/);
    expect(await listens(ports.ssh)).toBe(false);
    await operator.done('vm', 'start', 'one', '--wait');
    await operator.untilPrinted('one', /boot-count=2[\s\S]*login: /);
    expect(statSync(paths?.rootDisk ?? '').ino).toBe(disk);
  });

  it('whose guest powers itself off is started again after its backoff, as its policy says', async () => {
    const before = await operator.vm('one');
    const console = await operator.console('one');
    console.type('poweroff');
    const down = await operator.untilVm('one', ({ pid }) => pid === undefined, BOOT);
    expect(down).toMatchObject({ lastExit: { cause: 'self', code: 0 }, crashes: 1, wanted: 'running' });
    await operator.untilPrinted('one', /boot-count=3[\s\S]*login: /);
    const after = await operator.vm('one');
    expect(after.uid).toBe(before.uid);
    expect(after.pid).not.toBe(before.pid);
    const log = await operator.logs('one');
    expect(bootCounts(log)).toEqual([1, 2, 3]);
    expect(banners(log)).toBe(3);
    await console.leave();
  });

  it('that is deleted leaves its volume, with its bytes, to the next one that declares it', async () => {
    const { paths } = await operator.vm('two');
    await operator.done('vm', 'delete', 'two', '--wait');
    expect(operator.read('.deleted/two.yaml')).toContain('name: two');
    await until(async () => !(await operator.vms()).some(({ id }) => id === 'two'), BOOT);
    expect(() => statSync(paths?.folder ?? '')).toThrow('ENOENT');
    expect(statSync(paths?.volumes[0] ?? '').size).toBe(2 * 2 ** 30);

    // The manifest that failed first, mended: its failure is forgotten, and it takes the volume over.
    operator.put('three.yaml', await tinyManifest({ name: 'three', volume: 'ledger' }));
    await operator.untilPrinted('three', prompt('three'));
    expect((await operator.vm('three')).reason).toBeUndefined();
    const console = await operator.console('three');
    await console.ask('sh head -c 10 /dev/vdc', /the-ledger/);
    await console.leave();
  });
});

describe('an agent that is told to end', () => {
  it('leaves its guests running and their ports open', async () => {
    const before = await pids();
    await operator.stop();
    for (const name of ['one', 'three']) expect(isAlive(before[name] ?? 0)).toBe(true);
    const socket = connect(ports.ssh, '127.0.0.1');
    const [greeting] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    expect(greeting.toString()).toMatch(/^SSH-/);
  });
});

describe('a start that is refused over running guests', () => {
  /** As the system knows them: no agent is there to be asked. */
  const guestPids = (): readonly number[] =>
    processesNaming(`${operator.folder}/`, 'qmp')
      .map(({ pid }) => pid)
      .toSorted((a, b) => a - b);
  const other = join(operator.folder, 'other');
  const cases: readonly (readonly [string, number, Readonly<Record<string, string>>, string])[] = [
    ['without the binary of its backend', 78, { '--qemu-bin': '/nowhere/qemu' }, '/nowhere/qemu'],
    ['with a backend that is not theirs', 78, { '--backend': 'nosuch' }, 'bound to qemu'],
    ['with a network that is not there', 78, { '--guest-network': 'nosuch' }, 'nosuch'],
    ['in a run directory too deep for sockets', 78, { '--run-dir': `/${'d'.repeat(100)}` }, '--run-dir'],
    ['on a folder of another lineage', 65, { '--local': other }, '--adopt'],
  ];

  it.each(cases)('%s leaves them as they are', async (_what, code, flags, words) => {
    const guests = guestPids();
    expect(guests).toHaveLength(2);
    if ('--local' in flags) expect((await operator.cli('local', 'init', other)).code).toBe(0);
    const refused = await operator.refused(flags);
    expect(refused.code).toBe(code);
    expect(refused.stderr.replace(/\s+/g, ' ')).toContain(words);
    expect(guestPids()).toEqual(guests);
    expect(await page(ports.moved)).toContain('tiny one ');
  });

  it('does not keep the next start from finding them', async () => {
    const guests = guestPids();
    await operator.start();
    await operator.untilVm('one', ({ phase }) => phase === 'Running');
    const found = Object.values(await pids()).filter((pid) => pid !== undefined);
    expect(found.toSorted((a, b) => a - b)).toEqual(guests);
    await operator.stop();
  });
});
