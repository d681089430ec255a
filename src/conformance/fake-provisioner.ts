/**
 * A backend in memory that keeps its whole contract, with knobs for everything that goes wrong (`FakeHost.faultsOf`).
 *
 * One instance is one life of an agent. All that must outlive it is the host's; what it alone knows, like the exit code
 * of a child, is lost with it, as it is on a real host.
 */
import type {
  Capabilities,
  DiskService,
  Network,
  Observation,
  Provisioner,
  PumpHooks,
  ShutdownProgress,
  ShutdownStep,
  VmInstance,
  VmUid,
} from '@eitri/core/contracts';
import { permanent, retryable } from '@eitri/core/kit';
import type { CallLog } from './call-log.js';
import { consoleSocket, type FakeHost } from './fake-host.js';
import { MemoryDisks } from './memory-disks.js';
import { sampleCapabilities } from './samples.js';

/** What a `FakeProvisioner` works on and with. What may be left out makes an honest one. */
export interface FakeProvisionerOptions {
  readonly host: FakeHost;
  readonly pumpHooks: PumpHooks;
  /** Default: the host's. */
  readonly network?: Network;
  /** Default: disks in the host's files. */
  readonly disks?: DiskService;
  /** What differs from the fake's own capabilities; `guestNetwork: 'user'` needs no network. */
  readonly capabilities?: Partial<Capabilities>;
  /** Default: the host's. */
  readonly calls?: CallLog;
}

/**
 * A `Provisioner` over a `FakeHost`: keeps its contract, unless told otherwise. A new instance over the same host is a
 * restarted agent.
 */
export class FakeProvisioner implements Provisioner {
  /** Set: preflight rejects with this sentence. */
  missing: string | undefined;
  private readonly host: FakeHost;
  private readonly pumpHooks: PumpHooks;
  private readonly network: Network;
  private readonly disks: DiskService;
  private readonly calls: CallLog;
  private readonly can: Capabilities;
  /** VMMs that this life started (true: their exit code will be known) or found alive. */
  private readonly watched = new Map<VmUid, boolean>();

  constructor(options: FakeProvisionerOptions) {
    this.host = options.host;
    this.pumpHooks = options.pumpHooks;
    this.network = options.network ?? options.host.network;
    this.calls = options.calls ?? options.host.calls;
    this.disks = options.disks ?? new MemoryDisks({ host: options.host, calls: this.calls });
    this.can = sampleCapabilities(options.capabilities);
  }

  readonly capabilities = (signal: AbortSignal): Promise<Capabilities> =>
    this.calls.around('provisioner.capabilities', undefined, () => {
      signal.throwIfAborted();
      return structuredClone(this.can);
    });

  readonly preflight = (signal: AbortSignal): Promise<void> =>
    this.calls.around('provisioner.preflight', undefined, () => {
      signal.throwIfAborted();
      if (this.missing !== undefined) throw permanent(this.missing, { code: 'BackendMissing' });
    });

  readonly prepareRootDisk = (vm: VmInstance, basePath: string, signal: AbortSignal): Promise<void> =>
    this.calls.around('provisioner.prepareRootDisk', vm.uid, async () => {
      signal.throwIfAborted();
      const { diskMs } = this.host.faultsOf(vm.uid);
      if (diskMs > 0) await this.host.clock.sleep(diskMs, signal);
      const size = vm.spec.diskGib === undefined ? {} : { sizeGib: vm.spec.diskGib };
      await this.disks.cloneRootDisk({ uid: vm.uid, basePath, path: vm.paths.rootDisk, ...size }, signal);
    });

  readonly boot = (vm: VmInstance, signal: AbortSignal): Promise<void> =>
    this.calls.around('provisioner.boot', vm.uid, async () => {
      const { uid } = vm;
      const faults = this.host.faultsOf(uid);
      this.refuseUnknown(vm, 'boot');
      if (this.host.vmm(uid) !== undefined) {
        this.watched.set(uid, this.watched.get(uid) ?? false);
        await this.pumpHooks.ensure(uid);
        return;
      }
      signal.throwIfAborted();
      if (faults.refusesBoot !== undefined) throw permanent(faults.refusesBoot, { code: 'VmmFailed' });
      if (faults.bootFails > 0) {
        faults.bootFails--;
        throw retryable(`boot ${vm.spec.id}: the fake VMM would not start`, { code: 'VmmFailed' });
      }
      await this.attach(vm, signal);
      // Looked at for the last time: from here on a VMM exists, and the signal must not reach it.
      signal.throwIfAborted();
      this.host.remove(consoleSocket(vm));
      const pid = this.host.spawn(vm, this.can.guestNetwork);
      this.host.writeFile(vm.paths.pidFile, JSON.stringify({ pid, bootId: this.host.bootId }));
      this.watched.set(uid, true);
      if (this.host.vmm(uid) === undefined) {
        const cause = this.host.saidBy(uid)?.cause ?? 'it said nothing';
        throw retryable(`boot ${vm.spec.id}: the VMM ended at once: ${cause}`, { code: 'VmmFailed' });
      }
      await this.pumpHooks.ensure(uid);
    });

  readonly observe = (vm: VmInstance, _signal: AbortSignal): Promise<Observation> =>
    this.calls.around('provisioner.observe', vm.uid, () => this.look(vm.uid));

  readonly failureReason = (vm: VmInstance, signal: AbortSignal): Promise<string | undefined> =>
    this.calls.around('provisioner.failureReason', vm.uid, () => {
      signal.throwIfAborted();
      return this.host.saidBy(vm.uid)?.cause;
    });

  readonly address = (vm: VmInstance, signal: AbortSignal): Promise<string | undefined> =>
    this.calls.around('provisioner.address', vm.uid, async () =>
      this.can.guestNetwork === 'user' ? undefined : await this.network.address(vm.uid, signal),
    );

  readonly networkAddress = (vm: VmInstance, signal: AbortSignal): Promise<string | undefined> =>
    this.calls.around('provisioner.networkAddress', vm.uid, async () =>
      this.can.guestNetwork === 'user' ? undefined : await this.network.networkAddress(vm.uid, signal),
    );

  readonly resume = (vm: VmInstance, signal: AbortSignal): Promise<void> =>
    this.calls.around('provisioner.resume', vm.uid, () => {
      signal.throwIfAborted();
      this.host.resume(vm.uid);
    });

  readonly shutdown = (vm: VmInstance, step: ShutdownStep, signal: AbortSignal): Promise<ShutdownProgress> =>
    this.calls.around('provisioner.shutdown', vm.uid, async () => {
      const { uid } = vm;
      // Only the gentle step waits for anything that an abort could spare.
      if (step === 'powerButton') signal.throwIfAborted();
      this.refuseUnknown(vm, 'shut down');
      if (this.host.vmm(uid) !== undefined) {
        this.watched.set(uid, this.watched.get(uid) ?? false);
        if (step === 'powerButton') this.host.press(uid);
        else this.host.signal(uid, step === 'terminate' ? 'SIGTERM' : 'SIGKILL');
      }
      if (this.host.vmm(uid) !== undefined) return 'asked';
      await this.pumpHooks.stop(uid);
      return 'gone';
    });

  readonly destroy = (vm: VmInstance, signal: AbortSignal): Promise<void> =>
    this.calls.around('provisioner.destroy', vm.uid, async () => {
      const { uid, paths } = vm;
      this.refuseUnknown(vm, 'destroy');
      // The kill first: where it is refused, pidfile, tap and reservation stay, as handles for the next try.
      this.host.signal(uid, 'SIGKILL');
      await this.pumpHooks.stop(uid);
      if (this.can.guestNetwork === 'tap') await this.network.deleteTap(uid, signal);
      this.host.remove(paths.runFolder);
      this.host.remove(paths.pidFile);
      this.host.forget(uid);
      this.watched.delete(uid);
    });

  private async attach(vm: VmInstance, signal: AbortSignal): Promise<void> {
    try {
      const { attachMs } = this.host.faultsOf(vm.uid);
      if (attachMs > 0) await this.host.clock.sleep(attachMs, signal);
      if (this.can.guestNetwork === 'user') return;
      const address = await this.network.reserveIp(vm.uid, vm.mac, signal);
      const [named] = vm.spec.networks;
      const second = named === undefined ? {} : { named: { network: named.name, mac: vm.namedMac } };
      await this.network.createTap({ uid: vm.uid, mac: vm.mac, address, ...second }, signal);
    } catch (cause) {
      throw retryable(`attach the network of ${vm.spec.id}`, { cause, code: 'NetworkFailed' });
    }
  }

  private refuseUnknown(vm: VmInstance, what: string): void {
    const { unknown } = this.host.faultsOf(vm.uid);
    if (unknown !== undefined) throw retryable(`${what} ${vm.spec.id}: ${unknown}`, { code: 'Unknown' });
  }

  private look(uid: VmUid): Observation {
    const { unknown } = this.host.faultsOf(uid);
    if (unknown !== undefined) return { state: 'unknown', why: unknown };
    const vmm = this.host.vmm(uid);
    if (vmm !== undefined) {
      this.watched.set(uid, this.watched.get(uid) ?? false);
      if (vmm.state === 'paused') return { state: vmm.state, pid: vmm.pid, by: 'fullDisk' };
      return { state: vmm.state, pid: vmm.pid };
    }
    const child = this.watched.get(uid);
    const exit = this.host.exitOf(uid);
    if (child === undefined || exit === undefined) return { state: 'absent' };
    return child ? { state: 'exited', ...exit } : { state: 'exited' };
  }
}
