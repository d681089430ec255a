/**
 * What a factory hands to each case of the provisioner's suite: the backend, ways to look at the host without it, and
 * ways to make things go wrong.
 *
 * Probes look from outside (process table, devices, file system), never through the backend: a backend that believes
 * itself is what the suite is there to find.
 */
import type { Provisioner, VmInstance } from '@eitri/core/contracts';
import type { PumpCall } from '../fake-pump-hooks.js';

/** How the host is looked at. Each is asked again and again, and changes nothing. */
export interface ProvisionerProbes {
  /** Pids of all VMMs of this VM that are alive, whoever started them; a zombie is not. */
  readonly vmms: (vm: VmInstance) => Promise<readonly number[]>;
  /** What the backend told its pump hooks, all instances, oldest first (`FakePumpHooks.told`, with `vmmsOf`). */
  readonly pumpCalls: () => readonly PumpCall[];
  /** Devices of this VM on the host; none where the VMM has a network of its own. */
  readonly taps: (vm: VmInstance) => Promise<readonly string[]>;
  /** The reserved address; undefined where the VMM has a network of its own. */
  readonly reservation: (vm: VmInstance) => Promise<string | undefined>;
  /** Socket files of this VM. */
  readonly sockets: (vm: VmInstance) => Promise<readonly string[]>;
  /** Whether the process is on record, so that a new agent could find it: its pidfile stands. */
  readonly recorded: (vm: VmInstance) => Promise<boolean>;
  /** The root disk: which file it is (an inode), and what stands in it with its size (a digest). */
  readonly disk: (vm: VmInstance) => Promise<{ readonly file: string; readonly content: string } | undefined>;
}

/**
 * The knobs. Each acts on the host, not on the backend. A factory gives those that it can; a case whose knob is missing
 * fails with a sentence, until it is left out by name, with a reason.
 */
export interface ProvisionerFaults {
  /** What every VM needs is missing for instances that `restart` gives from now on. */
  readonly missingVmm?: () => Promise<void>;
  /** The kernel refuses every signal to this VM's VMM, or no longer does. */
  readonly refuseSignals?: (vm: VmInstance, refuse: boolean) => Promise<void>;
  /** VMMs of this VM end at once, having said this as an error, and then a warning. */
  readonly vmmDiesAtStart?: (vm: VmInstance, cause: string) => Promise<void>;
  /**
   * The running VMM ends by itself, having said this as an error (nothing, where it is undefined) and then a warning,
   * both in the VMM's own form. Resolves when it is gone.
   */
  readonly crash?: (vm: VmInstance, cause: string | undefined) => Promise<void>;
  /** The guest takes no notice of its power button. */
  readonly ignoreButton?: (vm: VmInstance) => Promise<void>;
  /** The VMM lives and its API does not answer. */
  readonly silentApi?: (vm: VmInstance) => Promise<void>;
  /** The VMM is there and may not be touched, or it can't be told whose it is; or no longer so. */
  readonly untouchable?: (vm: VmInstance, untouchable: boolean) => Promise<void>;
  /** No guest can be attached to the network, or can again. */
  readonly networkFails?: (fails: boolean) => Promise<void>;
  /** There is no room below the VM's disks, and its guest writes; or there is room again. */
  readonly fullDisk?: (vm: VmInstance, full: boolean) => Promise<void>;
  /** Socket files of a VMM that died stand where the next one wants to bind. */
  readonly staleSockets?: (vm: VmInstance) => Promise<void>;
  /** The VM's tap can't be removed, or can again. */
  readonly tapWontGo?: (vm: VmInstance, stuck: boolean) => Promise<void>;
}

/** The name of a fault that a context can make. */
export type FaultName = keyof ProvisionerFaults;

/** What one case of the provisioner suite is given: a backend on a host of its own, with eyes and faults. */
export interface ProvisionerContext {
  /** The backend in the first life of an agent. `preflight` was not called yet. */
  readonly provisioner: Provisioner;
  /** The agent restarts: a new instance over the same host; the old one is not used again. */
  readonly restart: () => Promise<Provisioner>;
  /** A VM that never was: a new uid, its own paths, seed and volumes in place, no root disk. */
  readonly newVm: () => Promise<VmInstance>;
  /** A prepared raw image, whose guest obeys its power button. */
  readonly imagePath: string;
  /** Lets time pass: a sleep on a real host, a manual clock's advance on a fake one. */
  readonly pass: (ms: number) => Promise<void>;
  readonly probes: ProvisionerProbes;
  readonly faults: ProvisionerFaults;
  /** Ends and removes all that this context made, also after a case failed. */
  readonly dispose: () => Promise<void>;
  /** How long a guest may take to power off, a VMM to end or to answer. Default 60,000 ms. */
  readonly patienceMs?: number;
}
