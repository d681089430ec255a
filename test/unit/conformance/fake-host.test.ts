import {
  CallLog,
  FakeHost,
  FakeProvisioner,
  FakePumpHooks,
  ManualClock,
  MemoryImages,
  MemoryStateStore,
  never,
  sampleSpec,
  sampleUid,
  sampleVm,
  type VmFaults,
} from '@eitri/conformance';
import type { VmInstance } from '@eitri/core/contracts';
import { codeOf, errorLine, isBug, isPermanent } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';

const signal = new AbortController().signal;

async function world(faults: Partial<VmFaults> = {}) {
  const clock = new ManualClock();
  const calls = new CallLog();
  const host = new FakeHost({ clock, calls });
  Object.assign(host.defaultFaults, faults);
  const store = new MemoryStateStore({ host });
  const pumps = new FakePumpHooks({ calls });
  const agent = () => new FakeProvisioner({ host, pumpHooks: pumps });
  const image = await new MemoryImages({ host }).ensure({ kind: 'catalog', name: 'tiny' }, () => undefined, signal);
  let count = 0;
  const newVm = async (): Promise<VmInstance> => {
    const uid = sampleUid(++count);
    const vm = sampleVm(uid, sampleSpec(`vm-${count.toString()}`), store.pathsOf(uid));
    await agent().prepareRootDisk(vm, image.path, signal);
    return vm;
  };
  return { clock, calls, host, store, pumps, agent, newVm };
}

describe('a fake host over restarts', () => {
  it('an agent restarts: the new one observes the same pid and starts no second VMM', async () => {
    const { agent, host, newVm } = await world();
    const vm = await newVm();
    await agent().boot(vm, signal);
    const next = agent();
    const seen = await next.observe(vm, signal);
    await next.boot(vm, signal);
    expect(seen).toEqual({ state: 'running', pid: host.vmm(vm.uid)?.pid });
    expect(host.starts(vm.uid)).toBe(1);
  });

  it('a child exits: its own agent learns the code, an agent that adopted it does not, a later one sees nothing', async () => {
    const { agent, host, newVm } = await world();
    const vm = await newVm();
    const parent = agent();
    await parent.boot(vm, signal);
    const adopter = agent();
    await adopter.observe(vm, signal);
    host.crash(vm.uid, 3);
    expect(await parent.observe(vm, signal)).toEqual({ state: 'exited', code: 3 });
    expect(await adopter.observe(vm, signal)).toEqual({ state: 'exited' });
    expect(await agent().observe(vm, signal)).toEqual({ state: 'absent' });
  });

  it('the host reboots: VMMs, taps and sockets are gone, disks and reservations stay, the boot id is new', async () => {
    const { agent, host, newVm } = await world();
    const vm = await newVm();
    await agent().boot(vm, signal);
    const address = host.network.reservationOf(vm.uid);
    const disk = host.files.get(vm.paths.rootDisk);
    const before = host.bootId;
    host.reboot();
    expect(host.bootId).not.toBe(before);
    expect(host.vmms()).toEqual([]);
    expect(host.network.taps()).toEqual([]);
    expect(host.list(vm.paths.runFolder)).toEqual([]);
    expect(host.files.get(vm.paths.rootDisk)).toEqual(disk);
    await agent().boot(vm, signal);
    expect(await agent().address(vm, signal)).toBe(address);
    expect(host.violations).toEqual([]);
  });
});

describe('invariants of a fake host', () => {
  it('a second VMM is started on one disk: a bug is thrown and remembered', async () => {
    const { agent, host, newVm } = await world();
    const vm = await newVm();
    await agent().boot(vm, signal);
    expect(() => host.spawn({ ...vm, uid: sampleUid(99) }, 'user')).toThrow(/second VMM/);
    expect(host.violations).toHaveLength(1);
  });

  it('a disk that was booted is made again: a bug is thrown and the disk stays', async () => {
    const { agent, host, newVm, clock } = await world();
    const vm = await newVm();
    await agent().boot(vm, signal);
    host.crash(vm.uid);
    const disk = host.files.get(vm.paths.rootDisk);
    const broken = await agent()
      .prepareRootDisk(vm, '/state/images/x.raw', signal)
      .catch((e: unknown) => e);
    expect(isPermanent(broken)).toBe(true);
    const base = [...host.files.keys()].find((f) => f.includes('/images/')) ?? '';
    const again = await agent()
      .prepareRootDisk(vm, base, signal)
      .catch((e: unknown) => e);
    expect(isBug(again)).toBe(true);
    expect(host.files.get(vm.paths.rootDisk)).toEqual(disk);
    expect(host.violations).toHaveLength(1);
    expect(clock.sleeping).toBe(0);
  });

  it('a folder is removed under a running VMM: a bug is thrown and nothing is removed', async () => {
    const { agent, host, newVm, store } = await world();
    const vm = await newVm();
    await agent().boot(vm, signal);
    await expect(store.removeVm(vm.uid, signal)).rejects.toThrow(/while its VMM runs/);
    expect(host.files.has(vm.paths.rootDisk)).toBe(true);
  });

  it('a VMM is started without its tap: a bug is thrown', async () => {
    const { host, newVm } = await world();
    const vm = await newVm();
    expect(() => host.spawn(vm, 'tap')).toThrow(/without its tap/);
  });
});

describe('knobs of a fake provisioner', () => {
  it('a slow start: starting until its time has passed, then running', async () => {
    const { agent, clock, newVm } = await world({ startingMs: 5000 });
    const vm = await newVm();
    const backend = agent();
    await backend.boot(vm, signal);
    expect((await backend.observe(vm, signal)).state).toBe('starting');
    await clock.advance(5000);
    expect((await backend.observe(vm, signal)).state).toBe('running');
  });

  it('boots that fail twice: two rejections that may be retried, then a guest', async () => {
    const { agent, host, newVm } = await world({ bootFails: 2 });
    const vm = await newVm();
    for (let i = 0; i < 2; i++) {
      const error = await agent()
        .boot(vm, signal)
        .catch((e: unknown) => e);
      expect(isPermanent(error)).toBe(false);
      expect(codeOf(error)).toBe('VmmFailed');
    }
    await agent().boot(vm, signal);
    expect(host.starts(vm.uid)).toBe(1);
  });

  it('a VMM that dies after a time: exited with its code and its cause, by the clock alone', async () => {
    const { agent, clock, newVm } = await world({ diesAfterMs: 700, exitCode: 4, cause: 'out of memory' });
    const vm = await newVm();
    const backend = agent();
    await backend.boot(vm, signal);
    await clock.advance(699);
    expect((await backend.observe(vm, signal)).state).toBe('running');
    await clock.advance(1);
    expect(await backend.observe(vm, signal)).toEqual({ state: 'exited', code: 4 });
    expect(await backend.failureReason(vm, signal)).toBe('out of memory');
  });

  it('a slow power-off: asked and stopping, then gone, and the pump is stopped only then', async () => {
    const { agent, clock, newVm, pumps } = await world({ powerOffMs: 3000 });
    const vm = await newVm();
    const backend = agent();
    await backend.boot(vm, signal);
    expect(await backend.shutdown(vm, 'powerButton', signal)).toBe('asked');
    expect((await backend.observe(vm, signal)).state).toBe('stopping');
    expect(pumps.running()).toEqual([vm.uid]);
    await clock.advance(3000);
    expect(await backend.shutdown(vm, 'powerButton', signal)).toBe('gone');
    expect(pumps.running()).toEqual([]);
  });

  it('a boot that waits for its network is aborted: it rejects as the network, and no VMM is there', async () => {
    const { agent, host, clock, newVm } = await world({ attachMs: 60_000 });
    const vm = await newVm();
    const abort = new AbortController();
    const boot = agent()
      .boot(vm, abort.signal)
      .catch((e: unknown) => e);
    await clock.advance(10);
    abort.abort(new Error('enough'));
    const error = await boot;
    expect(codeOf(error)).toBe('NetworkFailed');
    expect(errorLine(error)).toContain('enough');
    expect(host.vmms()).toEqual([]);
  });

  it('a state that can not be told: observed unknown, and every act on it rejects', async () => {
    const { agent, host, newVm } = await world();
    const vm = await newVm();
    host.faultsOf(vm.uid).unknown = 'pid 7 may not be signalled';
    expect(await agent().observe(vm, signal)).toEqual({ state: 'unknown', why: 'pid 7 may not be signalled' });
    await expect(agent().boot(vm, signal)).rejects.toThrow(/may not be signalled/);
    await expect(agent().shutdown(vm, 'kill', signal)).rejects.toThrow(/may not be signalled/);
    await expect(agent().destroy(vm, signal)).rejects.toThrow(/may not be signalled/);
  });
});

describe('the call log', () => {
  it('the agent dies at a call: what came before is done, what comes after is not', async () => {
    const { agent, calls, host, newVm } = await world();
    const vm = await newVm();
    calls.onCall = (call) => (call.member === 'network.createTap' && call.phase === 'after' ? never() : undefined);
    let ended = false;
    const end = (): void => {
      ended = true;
    };
    agent().boot(vm, signal).then(end, end);
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toBe(false);
    expect(host.network.taps(vm.uid)).toHaveLength(1);
    expect(host.vmms()).toEqual([]);
  });

  it('one member fails once for one VM: that VM alone sees it, once', async () => {
    const { agent, calls, newVm } = await world();
    const [a, b] = [await newVm(), await newVm()];
    calls.fail('provisioner.boot', new Error('no'), 1, a.uid);
    await agent().boot(b, signal);
    await expect(agent().boot(a, signal)).rejects.toThrow('no');
    await agent().boot(a, signal);
    expect(calls.count('provisioner.boot', a.uid)).toBe(2);
    expect(calls.entries.filter((c) => c.member === 'provisioner.boot' && c.phase === 'after')).toHaveLength(2);
  });
});
