/**
 * A machine in memory: what outlives an agent. VMM processes, files, taps, the boot id.
 *
 * Fakes of one agent life (`FakeProvisioner`, `FakePumpHooks`) are made anew over the same host; that is a restart of
 * the agent. The host moves by its clock alone and only when it is looked at, so that histories repeat exactly.
 *
 *   (no VMM) --spawn--> starting --startingMs--> running --press--> stopping --powerOffMs--> ended
 *                                 running --fullDisk--> paused --resume--> running
 *                any of them --diesAfterMs, signal, crash, reboot--> ended
 *
 * It watches what must never happen (`violations`), whoever does it: a second VMM on a disk, a disk replaced or grown
 * under a VMM or after a boot, a folder or tap taken from a running VMM, a VMM without its tap.
 */
import type { Clock, VmInstance, VmUid } from '@eitri/core/contracts';
import { bug, retryable } from '@eitri/core/kit';
import { CallLog } from './call-log.js';
import { FakeNetwork } from './fake-network.js';

/** What goes wrong with one VM. Every field may be set at any time; what concerns a start is read at the start. */
export interface VmFaults {
  /** How long boot waits for its network; boot's signal ends that wait. */
  attachMs: number;
  /** How long a started VMM does not answer yet: it is observed `starting`. Infinity: its API never answers. */
  startingMs: number;
  /** How long the disk takes to be made. */
  diskMs: number;
  /** So many boots are refused, retryable, before one works. */
  bootFails: number;
  /** Every boot is refused with this sentence, as permanent. */
  refusesBoot: string | undefined;
  /** What is there can't be told, for this reason: observed `unknown`; whatever would act on it rejects. */
  unknown: string | undefined;
  /** The VMM ends by itself so long after its start; 0: at once, so that boot rejects. */
  diesAfterMs: number | undefined;
  /** Exit code of a VMM that ends by itself or powers off. */
  exitCode: number;
  /** What a VMM that ends by itself says: the root cause, which warnings follow. */
  cause: string | undefined;
  /** How long the guest takes from the button to power-off. */
  powerOffMs: number;
  /** The button is delivered, and the guest does nothing. */
  ignoresButton: boolean;
  /** The button can't be delivered: shutdown rejects. */
  buttonFails: boolean;
  /** SIGTERM is delivered, and nothing happens. */
  ignoresTerminate: boolean;
  /** The kernel refuses every signal. */
  refusesSignals: boolean;
  /** There is no room below its disks: once it runs, its VMM pauses it, and a resume only pauses it again. */
  fullDisk: boolean;
}

const NO_FAULTS: VmFaults = {
  attachMs: 0,
  startingMs: 0,
  diskMs: 0,
  bootFails: 0,
  refusesBoot: undefined,
  unknown: undefined,
  diesAfterMs: undefined,
  exitCode: 0,
  cause: undefined,
  powerOffMs: 0,
  ignoresButton: false,
  buttonFails: false,
  ignoresTerminate: false,
  refusesSignals: false,
  fullDisk: false,
};

/** A VMM process of a `FakeHost`. */
export interface FakeVmm {
  readonly uid: VmUid;
  readonly pid: number;
  readonly state: 'starting' | 'running' | 'paused' | 'stopping';
  /** Root disk, seed and volumes, in the order of the guest's devices. */
  readonly disks: readonly string[];
}

/** How a VMM of a `FakeHost` ended. */
export interface FakeExit {
  readonly code?: number;
  readonly signal?: string;
}

/** How a VMM ends by itself. */
export interface FakeCrash extends FakeExit {
  /** The root cause, in the VMM's words. */
  readonly cause?: string;
  /** What it says after the cause. */
  readonly warnings?: readonly string[];
}

/** A file of a `FakeHost`, as far as a backend can tell files apart. */
export interface FakeFile {
  /** Another number for another file, also under the same path. */
  readonly inode: number;
  readonly content: string;
  readonly sizeBytes: number;
}

interface Process {
  readonly uid: VmUid;
  readonly pid: number;
  readonly disks: readonly string[];
  readonly folder: string;
  readonly startedAtMs: number;
  readonly diesAtMs: number;
  offAtMs: number;
  paused: boolean;
  said: { readonly cause: string | undefined; readonly warnings: readonly string[] };
  exit: FakeExit | undefined;
}

/** What a `FakeHost` is made of; all but its clock may be left out. */
export interface FakeHostOptions {
  readonly clock: Clock;
  /** Default: `boot-1`, then `boot-2`, … */
  readonly bootId?: string;
  readonly calls?: CallLog;
  /** Whether a VMM needs its seed to be there. Default false. */
  readonly needsSeed?: boolean;
}

/** A host in memory that outlives agents: VMMs, files, a network. Agents over it come and go. */
export class FakeHost {
  readonly clock: Clock;
  readonly calls: CallLog;
  readonly network: FakeNetwork;
  readonly files = new Map<string, FakeFile>();
  /** Faults of VMs that have none of their own yet. */
  readonly defaultFaults: VmFaults = { ...NO_FAULTS };
  /** Sentences about what must never happen. A good history ends with none. */
  readonly violations: string[] = [];
  private currentBootId: string;
  private boots = 1;
  private lastPid = 1000;
  private lastInode = 0;
  private readonly faultsByVm = new Map<VmUid, VmFaults>();
  /** The last run of each VM, ended or not. */
  private readonly runs = new Map<VmUid, Process>();
  private readonly startsByVm = new Map<VmUid, number>();
  private readonly bootedDisks = new Set<string>();

  constructor(private readonly options: FakeHostOptions) {
    this.clock = options.clock;
    this.calls = options.calls ?? new CallLog();
    this.currentBootId = options.bootId ?? 'boot-1';
    this.network = new FakeNetwork({
      calls: this.calls,
      inUse: (uid) => this.vmm(uid) !== undefined,
      violated: (sentence) => this.violations.push(sentence),
    });
  }

  get bootId(): string {
    return this.currentBootId;
  }

  /** Knobs of one VM, to be set in place: `host.faultsOf(uid).ignoresButton = true`. */
  faultsOf(uid: VmUid): VmFaults {
    const faults = this.faultsByVm.get(uid) ?? { ...this.defaultFaults };
    this.faultsByVm.set(uid, faults);
    return faults;
  }

  /** VMMs alive now, oldest first. */
  vmms(): readonly FakeVmm[] {
    return [...this.runs.keys()].map((uid) => this.vmm(uid)).filter((v) => v !== undefined);
  }

  /** The VMM of one VM, if it is alive. */
  vmm(uid: VmUid): FakeVmm | undefined {
    const run = this.settled(uid);
    if (run === undefined || run.exit !== undefined) return undefined;
    const now = this.clock.monotonicMs();
    const starting = now < run.startedAtMs + this.faultsOf(uid).startingMs;
    const stopping = run.offAtMs !== Number.POSITIVE_INFINITY;
    if (!stopping && !starting && this.faultsOf(uid).fullDisk) run.paused = true;
    const state = stopping ? 'stopping' : starting ? 'starting' : run.paused ? 'paused' : 'running';
    return { uid, pid: run.pid, state, disks: run.disks };
  }

  /** How often a VMM was started for this VM. */
  starts(uid: VmUid): number {
    return this.startsByVm.get(uid) ?? 0;
  }

  /** How its last run ended; undefined while it runs, or where none ever ran in this boot of the host. */
  exitOf(uid: VmUid): FakeExit | undefined {
    return this.settled(uid)?.exit;
  }

  /** What the VMM said in its last run. */
  saidBy(uid: VmUid): { readonly cause: string | undefined; readonly warnings: readonly string[] } | undefined {
    return this.settled(uid)?.said;
  }

  /** A VMM ends by itself, now. Does nothing where none is alive. */
  crash(uid: VmUid, how: number | FakeCrash = 1): void {
    const run = this.settled(uid);
    if (run === undefined || run.exit !== undefined) return;
    const crash: FakeCrash = typeof how === 'number' ? { code: how } : how;
    run.said = { cause: crash.cause, warnings: crash.warnings ?? [] };
    run.exit = {
      ...(crash.code === undefined ? {} : { code: crash.code }),
      ...(crash.signal === undefined ? {} : { signal: crash.signal }),
    };
  }

  /** The machine goes down and comes back: no process, no tap, no socket is left; disks and state are. */
  reboot(): void {
    this.boots++;
    this.currentBootId = `boot-${this.boots.toString()}`;
    this.runs.clear();
    this.network.reboot();
    for (const path of [...this.files.keys()]) if (path.startsWith(RUN_PREFIX)) this.files.delete(path);
  }

  // What follows is the kernel and the hypervisor, as a backend sees them.

  /** Starts a VMM, as the hypervisor would: it fails where a disk, the tap or a free socket is missing. */
  spawn(vm: VmInstance, guestNetwork: 'tap' | 'user'): number {
    const { uid, paths } = vm;
    const disks = [paths.rootDisk, ...(this.options.needsSeed === true ? [paths.seed] : []), ...vm.volumePaths];
    for (const other of this.vmms()) {
      const shared = other.disks.find((d) => disks.includes(d));
      if (shared !== undefined)
        throw this.violation(`a second VMM was started on ${shared} (pid ${other.pid.toString()} has it)`);
    }
    for (const disk of disks) if (!this.files.has(disk)) throw retryable(`could not open ${disk}: no such file`);
    if (guestNetwork === 'tap' && this.network.taps(uid).length === 0) {
      throw this.violation(`a VMM of ${vm.spec.id} was started without its tap: it would make one outside the bridge`);
    }
    if (this.files.has(consoleSocket(vm)))
      throw retryable(`could not bind ${consoleSocket(vm)}: address already in use`);
    const faults = this.faultsOf(uid);
    const now = this.clock.monotonicMs();
    const pid = ++this.lastPid;
    this.runs.delete(uid);
    this.runs.set(uid, {
      uid,
      pid,
      disks,
      folder: paths.folder,
      startedAtMs: now,
      diesAtMs: now + (faults.diesAfterMs ?? Number.POSITIVE_INFINITY),
      offAtMs: Number.POSITIVE_INFINITY,
      paused: false,
      said: { cause: undefined, warnings: [] },
      exit: undefined,
    });
    this.startsByVm.set(uid, this.starts(uid) + 1);
    for (const disk of disks) this.bootedDisks.add(disk);
    this.writeFile(consoleSocket(vm), '');
    return pid;
  }

  /** Presses the guest's power button. */
  press(uid: VmUid): void {
    const run = this.settled(uid);
    const faults = this.faultsOf(uid);
    if (faults.buttonFails) throw retryable('press the power button: the monitor does not answer');
    if (run === undefined || run.exit !== undefined || run.paused || faults.ignoresButton) return;
    run.offAtMs = Math.min(run.offAtMs, this.clock.monotonicMs() + faults.powerOffMs);
  }

  /** Lets a paused guest go on; where there is still no room, it is paused again at its next look. */
  resume(uid: VmUid): void {
    const run = this.settled(uid);
    if (run !== undefined) run.paused = false;
  }

  /** Sends a signal to a VMM. Throws where the kernel refuses. */
  signal(uid: VmUid, name: 'SIGTERM' | 'SIGKILL'): void {
    const run = this.settled(uid);
    const faults = this.faultsOf(uid);
    if (run === undefined || run.exit !== undefined) return;
    if (faults.refusesSignals) throw retryable(`kill ${run.pid.toString()}: operation not permitted`);
    if (name === 'SIGTERM') {
      if (!faults.ignoresTerminate) run.exit = { code: 0 };
    } else run.exit = { signal: 'SIGKILL' };
  }

  /** Forgets an ended run: nothing is left to reap. */
  forget(uid: VmUid): void {
    if (this.vmm(uid) === undefined) this.runs.delete(uid);
  }

  /** Writes a file anew: another inode. */
  writeFile(path: string, content: string, sizeBytes = content.length): void {
    const holder = this.vmms().find((v) => v.disks.includes(path));
    if (holder !== undefined) throw this.violation(`${path} was replaced under a VMM (pid ${holder.pid.toString()})`);
    if (this.bootedDisks.has(path) && this.files.has(path)) {
      throw this.violation(`${path} was replaced although its VM was booted from it`);
    }
    this.files.set(path, { inode: ++this.lastInode, content, sizeBytes });
  }

  /** Grows a file in place: the same inode. */
  resizeFile(path: string, sizeBytes: number): void {
    const file = this.files.get(path);
    if (file === undefined) throw retryable(`no such file: ${path}`);
    const holder = this.vmms().find((v) => v.disks.includes(path));
    if (holder !== undefined) throw this.violation(`${path} was resized under a VMM (pid ${holder.pid.toString()})`);
    this.files.set(path, { ...file, sizeBytes });
  }

  /** Removes a file, or a folder with all that stands in it. */
  remove(path: string): void {
    for (const run of this.vmms()) {
      if (run.disks.some((d) => d === path || d.startsWith(`${path}/`))) {
        throw this.violation(`${path} was removed while its VMM runs (pid ${run.pid.toString()})`);
      }
    }
    for (const name of [...this.files.keys()]) {
      if (name !== path && !name.startsWith(`${path}/`)) continue;
      this.files.delete(name);
      this.bootedDisks.delete(name);
    }
  }

  /** Paths below a folder, sorted. */
  list(folder: string): readonly string[] {
    return [...this.files.keys()].filter((f) => f.startsWith(`${folder}/`)).sort();
  }

  private violation(sentence: string): Error {
    this.violations.push(sentence);
    return bug(sentence);
  }

  /** The last run, moved on to now. */
  private settled(uid: VmUid): Process | undefined {
    const run = this.runs.get(uid);
    if (run === undefined || run.exit !== undefined) return run;
    const now = this.clock.monotonicMs();
    const faults = this.faultsOf(uid);
    if (now >= Math.min(run.diesAtMs, run.offAtMs)) {
      run.exit = { code: faults.exitCode };
      if (run.diesAtMs <= run.offAtMs)
        run.said = { cause: faults.cause, warnings: ['warning: dirty bitmap left behind'] };
    }
    return run;
  }
}

/** Sockets stand below it, and go with a reboot. */
export const RUN_PREFIX = '/run/';

/** The socket of a guest's console. */
export const consoleSocket = (vm: VmInstance): string => `${vm.paths.runFolder}/console.sock`;
