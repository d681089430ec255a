import { existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  CallLog,
  FakeNetwork,
  FakePumpHooks,
  FakeSupervisor,
  ManualClock,
  sampleSpec,
  sampleUid,
  sampleVm,
} from '@eitri/conformance';
import type { BackendHost, RunRequest, RunResult, VmInstance, VmPaths, VmSpec, VmUid } from '@eitri/core/contracts';
import { codeOf, errorFactory, errorLine, isPermanent, permanent } from '@eitri/core/kit';
import { createQemuBackend, type QemuOptions } from '@eitri/plugin-qemu';
import { StatePaths } from '../../../src/state/index.js';
import { silent } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const signal = new AbortController().signal;
const unused = (): never => {
  throw new Error('not used here');
};

interface LabOptions {
  readonly guestNetwork?: 'user' | 'plugin';
  readonly run?: (request: RunRequest) => Partial<RunResult>;
  readonly runFolder?: string;
  readonly options?: Partial<QemuOptions>;
}

/** A host in memory, but for the files: its QEMU is a name, and its firmware two empty files of the right size. */
function lab(options: LabOptions = {}) {
  const folder = tempFolder();
  const executable = join(folder, 'bin', 'qemu-system-x86_64');
  const share = join(folder, 'share', 'qemu');
  mkdirSync(join(folder, 'bin'));
  mkdirSync(share, { recursive: true });
  writeFileSync(executable, '');
  const sized = (name: string, bytes: number): void => {
    writeFileSync(join(share, name), '');
    truncateSync(join(share, name), bytes);
  };
  sized('edk2-x86_64-code.fd', 3_653_632);
  sized('edk2-i386-vars.fd', 540_672);
  const statePaths = new StatePaths({ stateDir: folder, runDir: join(folder, 'run') });
  const pathsOf = (uid: VmUid): VmPaths => {
    const paths = statePaths.pathsOf(uid);
    return { ...paths, runFolder: options.runFolder ?? paths.runFolder };
  };
  const calls = new CallLog();
  const clock = new ManualClock();
  const supervisor = new FakeSupervisor({ calls });
  const network = new FakeNetwork({ calls });
  const pumps = new FakePumpHooks({ calls });
  const runs: RunRequest[] = [];
  const host: BackendHost = {
    contract: 1,
    facts: { os: 'linux', arch: 'x64', bootId: 'b', hostname: 'h', root: true, cpus: 2, memoryMib: 4096 },
    settings: { chBin: '', firmware: '', vfkitBin: '', guestNetwork: options.guestNetwork ?? 'plugin' },
    logger: silent,
    runner: {
      which: () => Promise.resolve(executable),
      run: (request) => {
        runs.push(request);
        const answer = { exitCode: 0, stdout: 'QEMU emulator version 7.2.22 (Debian)\n', stderr: '' };
        return Promise.resolve().then(() => ({ ...answer, ...options.run?.(request) }));
      },
    },
    clock,
    random: { uuid: unused, fraction: unused, secretBytes: unused },
    supervisor,
    disks: { cloneRootDisk: unused, sizeOf: unused, growDisk: unused, ensureVolume: unused, releaseVolumes: unused },
    pumpHooks: pumps,
    errors: errorFactory,
    vmPaths: (uid) => Promise.resolve(pathsOf(uid)),
    network,
  };
  const { provisioner } = createQemuBackend(host, { deviceExists: () => Promise.resolve(true), ...options.options });
  const vm = (changes: Partial<VmSpec> = {}): VmInstance =>
    sampleVm(sampleUid(1), sampleSpec('web-1', changes), pathsOf(sampleUid(1)));
  /** QEMU's side of the socket: answers every command with `status`. */
  const qmp = (status: string): Promise<void> => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.write('{"QMP":{}}\r\n');
      socket.on('data', (chunk: Buffer) => {
        for (const line of chunk.toString().trim().split('\n')) {
          const { id } = JSON.parse(line) as { id: string };
          socket.write(`${JSON.stringify({ return: { status }, id })}\r\n`);
        }
      });
    });
    onTestFinished(() => void server.close());
    return new Promise((resolve) => server.listen(join(pathsOf(sampleUid(1)).runFolder, 'qmp.sock'), resolve));
  };
  return { provisioner, supervisor, network, pumps, calls, clock, runs, vm, qmp, pathsOf, share };
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it did not reject');
    },
    (error: unknown) => error,
  );
}

describe('boot', () => {
  test('it attaches the network, starts QEMU and ensures the pump, in this order', async () => {
    const { provisioner, supervisor, calls, vm, qmp } = lab();
    supervisor.onStart = () => qmp('running');
    await provisioner.boot(vm(), signal);
    const order = calls.members().filter((member) => member !== 'supervisor.observe');
    expect(order).toEqual(['network.reserveIp', 'network.createTap', 'supervisor.start', 'pumpHooks.ensure']);
  });

  test('the network refuses: the error is the network’s own, with its kind and code, and nothing is started', async () => {
    const { provisioner, network, calls, vm } = lab();
    network.foreignDevices.add(await network.tapName(sampleUid(1)));
    const error = await rejection(provisioner.boot(vm(), signal));
    expect(errorLine(error)).toMatch(/attach web-1 to the network: device eit-[0-9a-f]{8} is not ours/);
    expect([codeOf(error), isPermanent(error)]).toEqual(['NetworkFailed', true]);
    expect(calls.count('supervisor.start')).toBe(0);
  });

  test('the tap is missing after all: QEMU, which would make one outside the bridge, is not started', async () => {
    const { provisioner, calls, vm } = lab({ options: { deviceExists: () => Promise.resolve(false) } });
    expect(errorLine(await rejection(provisioner.boot(vm(), signal)))).toMatch(/tap eit-[0-9a-f]{8} is gone/);
    expect(calls.count('supervisor.start')).toBe(0);
  });

  test('QMP does not answer for a long time: the guest is left alone and boot resolves', async () => {
    const { provisioner, supervisor, clock, vm } = lab();
    let done = false;
    const booting = provisioner.boot(vm(), signal).then(() => (done = true));
    await until(async () => {
      await clock.advance(500);
      return done;
    });
    await booting;
    expect([...supervisor.processes.values()][0]?.signals).toEqual([]);
    expect(await provisioner.observe(vm(), signal)).toMatchObject({ state: 'starting' });
  });

  test('QEMU ends before it answers: boot rejects in its words, its pump is stopped', async () => {
    const { provisioner, supervisor, pumps, vm } = lab();
    supervisor.onStart = (process) => {
      writeFileSync(process.request.logFile, 'qemu-system-x86_64: -m: no memory is left\n', { flag: 'a' });
      supervisor.end(process.request.pidFile, { code: 1 });
    };
    const error = await rejection(provisioner.boot(vm(), signal));
    expect(errorLine(error)).toBe('start web-1: -m: no memory is left');
    expect(codeOf(error)).toBe('VmmFailed');
    expect(pumps.running()).toEqual([]);
  });

  test('QEMU ends without a word: boot says how it ended', async () => {
    const { provisioner, supervisor, vm } = lab();
    supervisor.onStart = (process) => supervisor.end(process.request.pidFile, { signal: 'SIGSYS' });
    expect(errorLine(await rejection(provisioner.boot(vm(), signal)))).toContain('by SIGSYS');
  });

  test('it can’t be told whether a QEMU runs: none is started, none ended', async () => {
    const { provisioner, supervisor, network, calls, vm } = lab();
    supervisor.unknown = 'process 4711 may not be signalled';
    for (const act of [
      provisioner.boot(vm(), signal),
      provisioner.shutdown(vm(), 'kill', signal),
      provisioner.destroy(vm(), signal),
    ]) {
      expect(errorLine(await rejection(act))).toContain('process 4711 may not be signalled');
    }
    expect(await provisioner.observe(vm(), signal)).toEqual({
      state: 'unknown',
      why: 'process 4711 may not be signalled',
    });
    expect(calls.count('supervisor.start') + calls.count('supervisor.signal')).toBe(0);
    expect(calls.count('network.deleteTap')).toBe(0);
    expect(await network.address(sampleUid(1), signal)).toBeUndefined();
  });

  test('the spec asks for what is not there: it is refused for good, before anything is touched', async () => {
    const { provisioner, calls, vm } = lab();
    const error = await rejection(provisioner.boot(vm({ hardware: { tpm: true } }), signal));
    expect([isPermanent(error), codeOf(error)]).toEqual([true, 'SpecInvalid']);
    expect(calls.count('network.reserveIp')).toBe(0);
  });

  test('the path of its sockets is longer than the system takes: it is refused for good, and names the flag', async () => {
    const { provisioner, vm } = lab({ runFolder: `/tmp/${'x'.repeat(100)}` });
    const error = await rejection(provisioner.boot(vm(), signal));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain('--run-dir');
  });

  test('the host’s firmware is of another family now: the guest keeps its variables, and boot says what is missing', async () => {
    const { provisioner, share, vm } = lab();
    const vars = join(vm().paths.guestFolder, 'vars.fd');
    mkdirSync(vm().paths.guestFolder, { recursive: true });
    writeFileSync(vars, 'mine');
    const error = await rejection(provisioner.boot(vm(), signal));
    expect(errorLine(error)).toContain('variables of 4 bytes');
    expect(readFileSync(vars, 'utf8')).toBe('mine');
    expect(existsSync(share)).toBe(true);
  });
});

describe('observe', () => {
  test.each([
    ['running', { state: 'running' }],
    ['paused', { state: 'paused', by: 'other' }],
    ['io-error', { state: 'paused', by: 'fullDisk' }],
    ['internal-error', { state: 'paused', by: 'fault' }],
    ['guest-panicked', { state: 'paused', by: 'other' }],
    ['prelaunch', { state: 'starting' }],
    ['shutdown', { state: 'stopping' }],
  ])('QMP says %s: it is %o', async (status, seen) => {
    const { provisioner, supervisor, vm, qmp } = lab();
    supervisor.onStart = () => qmp(status);
    await provisioner.boot(vm(), signal);
    expect(await provisioner.observe(vm(), signal)).toMatchObject(seen);
  });

  test('it was terminated and takes its time: it is stopping, although QMP goes on saying that it runs', async () => {
    const { provisioner, supervisor, vm, qmp } = lab();
    supervisor.onStart = () => qmp('running');
    supervisor.effectOf = () => 'ignored';
    await provisioner.boot(vm(), signal);
    expect(await provisioner.shutdown(vm(), 'terminate', signal)).toBe('asked');
    expect(await provisioner.observe(vm(), signal)).toMatchObject({ state: 'stopping' });
  });

  test('its signal is aborted: the answer is unknown, and no rejection', async () => {
    const { provisioner, vm } = lab();
    expect(await provisioner.observe(vm(), AbortSignal.abort(new Error('over')))).toMatchObject({ state: 'unknown' });
  });
});

describe('the end', () => {
  test('the kernel refuses the kill: it is said, and record, taps, reservation and pump stay', async () => {
    const { provisioner, supervisor, network, pumps, calls, vm, qmp } = lab();
    supervisor.onStart = () => qmp('running');
    await provisioner.boot(vm(), signal);
    supervisor.effectOf = () => 'refused';
    expect(errorLine(await rejection(provisioner.destroy(vm(), signal)))).toContain('operation not permitted');
    expect(calls.count('network.deleteTap') + calls.count('supervisor.forget')).toBe(0);
    expect(await network.address(sampleUid(1), signal)).toBeDefined();
    expect(pumps.running()).toEqual([sampleUid(1)]);
    supervisor.effectOf = () => 'ends';
    await provisioner.destroy(vm(), signal);
    expect(await network.address(sampleUid(1), signal)).toBeUndefined();
    expect(pumps.running()).toEqual([]);
  });

  test('it hangs in the kernel after SIGKILL: destroy rejects and keeps the taps', async () => {
    const { provisioner, supervisor, calls, vm, qmp } = lab();
    supervisor.onStart = () => qmp('running');
    await provisioner.boot(vm(), signal);
    supervisor.effectOf = () => 'ignored';
    expect(errorLine(await rejection(provisioner.destroy(vm(), signal)))).toContain('still there');
    expect(calls.count('network.deleteTap')).toBe(0);
  });

  test('the tap won’t go: destroy rejects, and succeeds once it goes', async () => {
    const { provisioner, supervisor, network, vm, qmp } = lab();
    supervisor.onStart = () => qmp('running');
    await provisioner.boot(vm(), signal);
    network.stuckTaps.add(sampleUid(1));
    await rejection(provisioner.destroy(vm(), signal));
    network.stuckTaps.delete(sampleUid(1));
    await provisioner.destroy(vm(), signal);
    expect(await provisioner.observe(vm(), signal)).toEqual({ state: 'absent' });
  });

  test('it is just ending, its sockets removed, its process not gone yet: the button finds it gone', async () => {
    const { provisioner, supervisor, pumps, calls, vm, qmp, pathsOf } = lab();
    supervisor.onStart = () => qmp('running');
    await provisioner.boot(vm(), signal);
    const { pidFile, runFolder } = pathsOf(sampleUid(1));
    rmSync(join(runFolder, 'qmp.sock'));
    calls.on('supervisor.waitGone', () => supervisor.end(pidFile, { code: 0 }));
    expect(await provisioner.shutdown(vm(), 'powerButton', signal)).toBe('gone');
    expect(pumps.running()).toEqual([]);
  });

  test('the power button can’t be pressed: the step rejects, and the guest keeps its pump', async () => {
    const { provisioner, supervisor, pumps, clock, vm } = lab();
    supervisor.onStart = () => undefined;
    let done = false;
    const booting = provisioner.boot(vm(), signal).then(() => (done = true));
    await until(async () => {
      await clock.advance(500);
      return done;
    });
    await booting;
    expect(errorLine(await rejection(provisioner.shutdown(vm(), 'powerButton', signal)))).toContain(
      'power button of web-1',
    );
    expect(pumps.running()).toEqual([sampleUid(1)]);
  });
});

describe('the host', () => {
  test('KVM opens and fails at the first vCPU: guests are emulated, and the capabilities quote why', async () => {
    const { provisioner, runs } = lab({
      run: ({ args }) => {
        if (args.includes('kvm')) throw new Error('run qemu: exit code 134: failed to set MSR 0x10a');
        return {};
      },
    });
    await provisioner.preflight(signal);
    expect(JSON.stringify((await provisioner.capabilities(signal)).notes)).toContain('failed to set MSR 0x10a');
    // The trial is the machine and the CPU that a guest would have.
    expect(runs.find(({ args }) => args.includes('kvm'))?.args).toEqual(expect.arrayContaining(['host', '-no-reboot']));
  });

  test('QEMU is older than what is relied on: preflight rejects for good, with both versions', async () => {
    const { provisioner } = lab({ run: () => ({ stdout: 'QEMU emulator version 5.2.0\n' }) });
    const error = await rejection(provisioner.preflight(signal));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toMatch(/5\.2\.0.*6\.2 or newer/);
  });

  test('QEMU was not there and is installed now: the next look sees it', async () => {
    let broken = true;
    const { provisioner } = lab({
      run: () => {
        if (broken) throw permanent('no such file');
        return {};
      },
    });
    await rejection(provisioner.preflight(signal));
    broken = false;
    await provisioner.preflight(signal);
  });
});
