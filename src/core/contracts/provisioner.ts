import type { Capabilities } from './capabilities.js';
import type { Observation } from './observation.js';
import type { VmPaths } from './vm-paths.js';
import type { VmSpec, VmUid } from './vm-spec.js';

/** One VM as a backend is told of it. */
export interface VmInstance {
  readonly uid: VmUid;
  readonly spec: VmSpec;
  readonly paths: VmPaths;
  /** MAC of the first NIC. */
  readonly mac: string;
  /** MAC of the named network's NIC; used only where the spec has one. */
  readonly namedMac: string;
  /** Paths of the volumes, in spec order: the first is /dev/vdc. */
  readonly volumePaths: readonly string[];
}

/**
 * How hard to ask. `powerButton`: the guest's own shutdown, as often as it is asked. `terminate`: ask the VMM to end.
 * `kill`: end it.
 */
export type ShutdownStep = 'powerButton' | 'terminate' | 'kill';

/** `asked`: delivered, the guest has not gone yet. `gone`: no VMM of ours is left, and its pump was stopped. */
export type ShutdownProgress = 'asked' | 'gone';

/**
 * A hypervisor backend.
 *
 * Call order: `capabilities` and `preflight` once at the agent's start, in that order; then for each VM
 * `prepareRootDisk` → `boot` → (`observe`, `address`, `networkAddress`, `failureReason`, `resume` at any time) →
 * `shutdown` (as often as it takes) → `boot` again or `destroy`. After a restart of the agent any of `observe`, `boot`, `shutdown`,
 * `destroy` may be the first call for a VM: what a backend remembers it must be able to find out again.
 *
 * Concurrency: calls for one VM are serial, but `observe`, `address`, `networkAddress` and `failureReason`, which may
 * run beside any other. Calls for several VMs run at once. All members may be asked for a VM that is not there.
 *
 * Arguments and results are plain data, so that a backend can run in a process of its own. Errors are retryable where
 * nothing else is said.
 */
export interface Provisioner {
  /**
   * What this backend can do here. Pure of the VMs; the same answer for the agent's life. Permanent: the hypervisor is
   * missing, or too old to be asked.
   */
  readonly capabilities: (signal: AbortSignal) => Promise<Capabilities>;
  /**
   * Checks what every VM would need: binary, version, firmware, devices. Rejects, permanent, with a sentence that says
   * what to install. So trouble of the whole host is told once, as the reason why the agent does not start, and not
   * once a VM. Changes nothing: it may be called again.
   */
  readonly preflight: (signal: AbortSignal) => Promise<void>;
  /**
   * Makes the root disk from a prepared image, through the host's disk service. Called only for a VM that never
   * attempted a boot. Idempotent: a second call makes the same disk again. Resolved means that the whole disk stands,
   * on disk. Permanent: as `DiskService.cloneRootDisk` says.
   */
  readonly prepareRootDisk: (vm: VmInstance, basePath: string, signal: AbortSignal) => Promise<void>;
  /**
   * Starts the VMM: first the network (its error is shown as its own, with `NetworkFailed`), then stale sockets are
   * removed, then the process is started and recorded, then `pumpHooks.ensure` is called. Resolved means: a VMM of ours
   * runs and is recorded. Idempotent: if one is alive already, nothing is started.
   *
   * The signal bounds the attaching of the network and never the guest: a VMM once started outlives signal and agent.
   * On rejection no VMM of this call is left. Permanent: the VMM refuses what the spec asks of it, or can't be
   * executed.
   */
  readonly boot: (vm: VmInstance, signal: AbortSignal) => Promise<void>;
  /**
   * What the VMM does now; called at every look, so it is cheap. Never rejects for what it sees: what can't be found
   * out is `unknown`. Changes nothing. An aborted signal rejects with its reason.
   */
  readonly observe: (vm: VmInstance, signal: AbortSignal) => Promise<Observation>;
  /**
   * The root cause in the VMM's own words, from its last run; undefined when it said none. Never a mere
   * warning. Called after a VMM ended by itself. Idempotent: it reads what is kept until the next start. Rejects,
   * retryable, when that can't be read.
   */
  readonly failureReason: (vm: VmInstance, signal: AbortSignal) => Promise<string | undefined>;
  /** Address of the first NIC, once known. Never allocates. Called at looks at a running VM; changes nothing. */
  readonly address: (vm: VmInstance, signal: AbortSignal) => Promise<string | undefined>;
  /** Address of the named network's NIC, once known; undefined where the spec has none. As `address` otherwise. */
  readonly networkAddress: (vm: VmInstance, signal: AbortSignal) => Promise<string | undefined>;
  /**
   * Lets a guest go on that its VMM paused for want of room below a disk; the write is tried again, and what finds no
   * room pauses it again. Called now and then while `observe` says `paused` by `fullDisk`. Resolved means that the VMM was
   * told, or that there was nothing to resume: a guest that runs, that is gone, or that was paused otherwise is left as
   * it is. Idempotent.
   */
  readonly resume: (vm: VmInstance, signal: AbortSignal) => Promise<void>;
  /**
   * One step of a shutdown; the engine owns the deadlines between the steps. Resolves with `gone` when no VMM is left,
   * having stopped the pump. Rejects when the step could not be delivered: the guest may run on, and keeps its pump.
   * Idempotent, also for a VM that is gone. A kill is not skipped because the signal is aborted.
   */
  readonly shutdown: (vm: VmInstance, step: ShutdownStep, signal: AbortSignal) => Promise<ShutdownProgress>;
  /**
   * Ends the VMM at once and releases everything that `boot` made: process, pump, sockets, taps, reservation, ports.
   * Disks and the VM's folder are the engine's. Resolved is a promise: no process, device or port of this life remains.
   * A kill that the kernel refuses, or a tap that won't go, rejects. The same call then goes on from there. Idempotent.
   * Not skipped because the signal is aborted.
   */
  readonly destroy: (vm: VmInstance, signal: AbortSignal) => Promise<void>;
}
