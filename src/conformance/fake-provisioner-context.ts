/**
 * The context of the provisioner's suite over a fake host: how the suite is tried itself, and a model of a factory.
 */
import type { Provisioner, VmInstance } from '@eitri/core/contracts';
import { consoleSocket, FakeHost } from './fake-host.js';
import { FakeProvisioner } from './fake-provisioner.js';
import { FakePumpHooks, type PumpCall } from './fake-pump-hooks.js';
import { ManualClock } from './manual-clock.js';
import { MemoryImages } from './memory-images.js';
import { MemoryStateStore } from './memory-state-store.js';
import type { ProvisionerContext } from './provisioner/context.js';
import { sampleSpec, sampleUid, sampleVm } from './samples.js';

/** What a wrapped backend may look at. */
export interface FakeWorld {
  readonly host: FakeHost;
  readonly pumps: FakePumpHooks;
  readonly clock: ManualClock;
}

/**
 * A context of the provisioner suite over a fake host and a manual clock: no file, no process, no waiting.
 *
 * @param wrap - What is tried instead of the good fake, made from it anew for each life of the agent: a proxy to
 * another process, or something deliberately broken.
 */
export async function fakeProvisionerContext(
  wrap: (good: FakeProvisioner, world: FakeWorld) => Provisioner = (good) => good,
): Promise<ProvisionerContext & { readonly world: FakeWorld }> {
  const clock = new ManualClock();
  const host = new FakeHost({ clock });
  const store = new MemoryStateStore({ host });
  const told: PumpCall[] = [];
  const vmmsOf = (uid: VmInstance['uid']): readonly number[] => pidsOf(host, uid);
  let pumps = new FakePumpHooks({ vmmsOf, told });
  let missing: string | undefined;
  const newLife = (): Provisioner => {
    pumps = new FakePumpHooks({ vmmsOf, told });
    const good = new FakeProvisioner({ host, pumpHooks: pumps });
    good.missing = missing;
    return wrap(good, { host, pumps, clock });
  };
  const signal = new AbortController().signal;
  const image = await new MemoryImages({ host }).ensure({ kind: 'catalog', name: 'tiny' }, () => undefined, signal);
  let vms = 0;
  return {
    provisioner: newLife(),
    world: { host, pumps, clock },
    restart: () => Promise.resolve(newLife()),
    newVm: () => {
      const uid = sampleUid(++vms);
      return Promise.resolve(sampleVm(uid, sampleSpec(`vm-${vms.toString()}`), store.pathsOf(uid)));
    },
    imagePath: image.path,
    pass: (ms) => clock.advance(ms),
    dispose: () => Promise.resolve(),
    patienceMs: 2_000,
    probes: {
      vmms: (vm) => Promise.resolve(pidsOf(host, vm.uid)),
      pumpCalls: () => told,
      taps: (vm) => Promise.resolve(host.network.taps(vm.uid)),
      reservation: (vm) => Promise.resolve(host.network.reservationOf(vm.uid)),
      sockets: (vm) => Promise.resolve(host.list(vm.paths.runFolder)),
      recorded: (vm) => Promise.resolve(host.files.has(vm.paths.pidFile)),
      disk: (vm) => {
        const file = host.files.get(vm.paths.rootDisk);
        const content = `${file?.content ?? ''} ${file?.sizeBytes.toString() ?? ''}`;
        return Promise.resolve(file === undefined ? undefined : { file: file.inode.toString(), content });
      },
    },
    faults: {
      missingVmm: () => {
        missing = 'fake-vmm is not installed: install the package fake-vmm';
        return Promise.resolve();
      },
      refuseSignals: (vm, refuse) => set(host, vm, { refusesSignals: refuse }),
      vmmDiesAtStart: (vm, cause) => set(host, vm, { diesAfterMs: 0, exitCode: 1, cause }),
      crash: (vm, cause) => {
        host.crash(vm.uid, {
          code: 1,
          ...(cause === undefined ? {} : { cause }),
          warnings: ['warning: cache was dropped'],
        });
        return Promise.resolve();
      },
      ignoreButton: (vm) => set(host, vm, { ignoresButton: true }),
      silentApi: (vm) => set(host, vm, { startingMs: Number.POSITIVE_INFINITY }),
      untouchable: (vm, on) => set(host, vm, { unknown: on ? 'pid 7 may not be signalled' : undefined }),
      networkFails: (fails) => {
        host.network.failing = fails ? 'bridge eitri0 is gone' : undefined;
        return Promise.resolve();
      },
      fullDisk: (vm, full) => set(host, vm, { fullDisk: full }),
      staleSockets: (vm) => {
        host.writeFile(consoleSocket(vm), '');
        return Promise.resolve();
      },
      tapWontGo: (vm, stuck) => {
        if (stuck) host.network.stuckTaps.add(vm.uid);
        else host.network.stuckTaps.delete(vm.uid);
        return Promise.resolve();
      },
    },
  };
}

function pidsOf(host: FakeHost, uid: VmInstance['uid']): readonly number[] {
  const vmm = host.vmm(uid);
  return vmm === undefined ? [] : [vmm.pid];
}

function set(host: FakeHost, vm: VmInstance, faults: Partial<ReturnType<FakeHost['faultsOf']>>): Promise<void> {
  Object.assign(host.faultsOf(vm.uid), faults);
  return Promise.resolve();
}
