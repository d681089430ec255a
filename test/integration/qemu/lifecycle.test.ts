import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Observation, VmInstance } from '@eitri/core/contracts';
import { codeOf, errorLine, isPermanent } from '@eitri/core/kit';
import { qemuLab, type Agent } from '../../support/qemu/lab.js';
import { until } from '../../support/until.js';

const signal = new AbortController().signal;
const serial = (vm: VmInstance): string => join(vm.paths.runFolder, 'serial.sock');
const qmp = (vm: VmInstance): string => join(vm.paths.runFolder, 'qmp.sock');

const isUp = (agent: Agent, vm: VmInstance) =>
  until(async () => {
    const seen = await agent.provisioner.observe(vm, signal);
    return seen.state === 'running' ? seen : undefined;
  });

/** The rejection of a promise. */
async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not reject');
}

/** Gone for good: until its parent, which is this process, has looked, a dead one still stands in the table. */
const isGone = (pid: number) => until(() => !existsSync(`/proc/${pid.toString()}`));
const pidOf = (seen: Observation): number => ('pid' in seen ? seen.pid : 0);

describe('a guest on real QEMU', () => {
  test('it was never booted: it is absent, and every step of its end finds nothing to do', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    expect(await agent.provisioner.observe(vm, signal)).toEqual({ state: 'absent' });
    expect(await agent.provisioner.shutdown(vm, 'powerButton', signal)).toBe('gone');
    await agent.provisioner.destroy(vm, signal);
  });

  test('it boots: it runs with its pump, its sockets in a folder for the agent alone, under the sandbox', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);

    const seen = await isUp(agent, vm);
    expect(agent.pumps.running()).toEqual([vm.uid]);
    expect(statSync(vm.paths.runFolder).mode & 0o777).toBe(0o700);
    expect(existsSync(serial(vm)) && existsSync(qmp(vm))).toBe(true);
    // Mode 2: a filter is on every thread.
    for (const thread of readdirSync(`/proc/${seen.pid.toString()}/task`)) {
      expect(readFileSync(`/proc/${seen.pid.toString()}/task/${thread}/status`, 'utf8')).toMatch(/^Seccomp:\s+2$/m);
    }
  });

  test('it is booted twice: one VMM runs, and the second boot only sees to its pump', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    const first = await isUp(agent, vm);
    await agent.provisioner.boot(vm, signal);
    expect(pidOf(await agent.provisioner.observe(vm, signal))).toBe(first.pid);
  });

  test('the agent is restarted: the new one finds the guest by its paths alone, and can end it', async () => {
    const lab = qemuLab();
    const before = lab.agent();
    const vm = lab.vm(1);
    await before.provisioner.boot(vm, signal);
    const { pid } = await isUp(before, vm);

    const after = lab.agent();
    const stream = await after.console.open(vm.uid, signal);
    stream.destroy();
    expect(await after.provisioner.observe(vm, signal)).toEqual({ state: 'running', pid });
    await after.provisioner.boot(vm, signal);
    expect(await after.provisioner.observe(vm, signal)).toEqual({ state: 'running', pid });
    expect(await after.provisioner.shutdown(vm, 'terminate', signal)).toBe('gone');
    await isGone(pid);
  });

  test('QEMU was killed and left its sockets: the next boot removes them and comes up', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    const { pid } = await isUp(agent, vm);
    process.kill(pid, 'SIGKILL');
    await until(async () => (await agent.provisioner.observe(vm, signal)).state === 'exited');
    expect(existsSync(qmp(vm))).toBe(true);

    await agent.provisioner.boot(vm, signal);
    expect((await isUp(agent, vm)).pid).not.toBe(pid);
  });

  test('its disk is in use by another guest: boot rejects with both lines of the lock, and nothing is left', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    await isUp(agent, vm);
    const other = lab.vm(2);
    const thief: VmInstance = { ...other, paths: { ...other.paths, rootDisk: vm.paths.rootDisk } };

    const error = await rejection(agent.provisioner.boot(thief, signal));
    expect(errorLine(error)).toMatch(/Failed to get "write" lock Is another process using the image \[.*disk\.raw\]\?/);
    expect(codeOf(error)).toBe('VmmFailed');
    expect(isPermanent(error)).toBe(false);
    expect(await agent.provisioner.failureReason(thief, signal)).toContain('Failed to get "write" lock');
    expect(['absent', 'exited']).toContain((await agent.provisioner.observe(thief, signal)).state);
    expect(agent.pumps.running()).toEqual([vm.uid]);
    expect(existsSync(serial(thief)) || existsSync(qmp(thief))).toBe(false);
    expect((await agent.provisioner.observe(vm, signal)).state).toBe('running');
  });

  test('its seed is missing: boot rejects in the words of QEMU, and works once the seed is there', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    const missing: VmInstance = { ...vm, paths: { ...vm.paths, seed: join(vm.paths.guestFolder, 'none.img') } };
    const error = await rejection(agent.provisioner.boot(missing, signal));
    expect(errorLine(error)).toMatch(/Could not open '.*none\.img': No such file or directory/);

    await agent.provisioner.boot(vm, signal);
    await isUp(agent, vm);
    expect(await agent.provisioner.failureReason(vm, signal)).toBeUndefined();
  });

  test('its signal is aborted after the boot: it runs on', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    const pass = new AbortController();
    await agent.provisioner.boot(vm, pass.signal);
    pass.abort(new Error('the pass is over'));
    await isUp(agent, vm);
  });

  test('the signal was aborted before: nothing is started', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await rejection(agent.provisioner.boot(vm, AbortSignal.abort(new Error('over'))));
    expect(await agent.provisioner.observe(vm, signal)).toEqual({ state: 'absent' });
  });

  test('it is killed under an aborted signal: it is gone all the same, its pump and sockets too', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    const { pid } = await isUp(agent, vm);
    expect(await agent.provisioner.shutdown(vm, 'kill', AbortSignal.abort(new Error('over')))).toBe('gone');
    await isGone(pid);
    expect(agent.pumps.running()).toEqual([]);
    expect(existsSync(serial(vm)) || existsSync(qmp(vm))).toBe(false);
  });

  test('it is destroyed, ten times: nothing is left of it but its own folder', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    const { pid } = await isUp(agent, vm);
    for (let i = 0; i < 10; i++) await agent.provisioner.destroy(vm, AbortSignal.abort(new Error('over')));
    await isGone(pid);
    expect(await agent.provisioner.observe(vm, signal)).toEqual({ state: 'absent' });
    expect(existsSync(vm.paths.runFolder) || existsSync(vm.paths.pidFile)).toBe(false);
    expect(existsSync(vm.paths.rootDisk)).toBe(true);
  });

  test('its QMP is held by somebody else: it is still seen as it was, and its power button says that it failed', async () => {
    const lab = qemuLab();
    const agent = lab.agent({ qemu: { queryLimitMs: 200 } });
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    const { pid } = await isUp(agent, vm);
    const holder = await lab.hold(qmp(vm));

    expect(await agent.provisioner.observe(vm, signal)).toEqual({ state: 'running', pid });
    // An agent that never had an answer knows no more than that it lives.
    expect(await lab.agent({ qemu: { queryLimitMs: 200 } }).provisioner.observe(vm, signal)).toEqual({
      state: 'starting',
      pid,
    });
    const error = await rejection(agent.provisioner.shutdown(vm, 'powerButton', signal));
    expect(errorLine(error)).toMatch(/press the power button of vm-1: no answer within/);
    expect(agent.pumps.running()).toEqual([vm.uid]);
    holder.destroy();
    expect(await agent.provisioner.shutdown(vm, 'powerButton', signal)).toBe('asked');
  });

  test("the firmware's variables are copied once, and never replaced", async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1);
    const vars = join(vm.paths.guestFolder, 'vars.fd');
    await agent.provisioner.boot(vm, signal);
    await agent.provisioner.shutdown(vm, 'kill', signal);
    expect(statSync(vars).mode & 0o777).toBe(0o600);
    const own = Buffer.alloc(statSync(vars).size, 0xee);
    writeFileSync(vars, own);
    await agent.provisioner.boot(vm, signal);
    await agent.provisioner.shutdown(vm, 'kill', signal);
    expect(readFileSync(vars).subarray(-16)).toEqual(own.subarray(-16));
  });

  test('it has volumes, limits, shared memory and a serial number: QEMU takes every option', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1, {
      spec: {
        cpus: 2,
        volumes: [
          { name: 'data', sizeGib: 1 },
          { name: 'more', sizeGib: 1 },
        ],
        limits: { diskIops: 500, diskBandwidthBytes: 2 ** 20 },
        hardware: { sharedMemory: true, smbiosSerial: 'A,1' },
      },
    });
    const volumePaths = ['one,two.raw', 'three.raw'].map((name) => lab.blankDisk(name));
    await agent.provisioner.boot({ ...vm, volumePaths }, signal);
    await isUp(agent, vm);
  });

  test('the host has no memory pages of the size that it wants: boot rejects, and says so', async () => {
    const lab = qemuLab();
    const agent = lab.agent();
    const vm = lab.vm(1, { spec: { hardware: { hugepages: '1GiB' }, memoryMib: 1024 * 1024 } });
    expect(errorLine(await rejection(agent.provisioner.boot(vm, signal)))).toMatch(/start vm-1: .+/);
  });
});

describe('the host', () => {
  test('everything is there: preflight passes, and the capabilities name version and limits', async () => {
    const { provisioner } = qemuLab().agent();
    await provisioner.preflight(signal);
    const capabilities = await provisioner.capabilities(signal);
    expect(capabilities.vmmVersion).toMatch(/^QEMU emulator version \d+\.\d+/);
    expect(capabilities).toMatchObject({ guestNetwork: 'user', addressReachable: false, publishesPorts: true });
    const notes = capabilities.notes.map(({ level, text }) => `${level}: ${text}`).join('\n');
    expect(notes).toMatch(/^info: .*published ports only/m);
    expect(notes).toMatch(/^warn: .*emulated/m);
  });

  test('QEMU is not there: preflight rejects for good, and says what to install', async () => {
    const { provisioner } = qemuLab().agent({ qemuBin: 'qemu-system-none' });
    const error = await rejection(provisioner.preflight(signal));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toMatch(/qemu-system-none is not on this host: install the package qemu-system-/);
    expect((await provisioner.capabilities(signal)).vmmVersion).toBe('QEMU was not found');
  });

  test('no network plugin is there and user-mode networking was not asked for: preflight rejects, and names the flag', async () => {
    const { provisioner } = qemuLab().agent({ guestNetwork: 'plugin' });
    const error = await rejection(provisioner.preflight(signal));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain('--guest-network user');
  });

  test('acceleration is picked by trying: what is picked boots a guest', async () => {
    const lab = qemuLab();
    const agent = lab.agent({ qemu: { accelerators: ['kvm', 'tcg'] } });
    const vm = lab.vm(1);
    await agent.provisioner.boot(vm, signal);
    await isUp(agent, vm);
  });

  test.each([
    ['makes a machine, but never gets it through its firmware', 'sleep 600 & wait', /not done within/],
    ['ends at its first vCPU', 'echo "failed to set MSR 0x10a" >&2; exit 134', /failed to set MSR/],
  ])('acceleration that %s is not picked, and the capabilities say why', async (_, broken, why) => {
    const lab = qemuLab();
    const qemuBin = join(lab.folder, 'qemu');
    const real = await lab.agent().host.runner.which('qemu-system-x86_64');
    // It still makes a machine that is not run, as a host does whose kernel can't enter a guest.
    const script = `case " $* " in *' -accel kvm '*) case " $* " in *' -S '*) exit 0;; *) ${broken};; esac;; esac`;
    writeFileSync(qemuBin, `#!/bin/sh\n${script}\nexec ${real ?? ''} "$@"\n`, { mode: 0o755 });
    const { provisioner } = lab.agent({ qemuBin, qemu: { accelerators: ['kvm', 'tcg'], trialMs: 1_000 } });
    const { notes } = await provisioner.capabilities(signal);
    expect(notes.map(({ text }) => text).join('\n')).toMatch(why);
  });
});
