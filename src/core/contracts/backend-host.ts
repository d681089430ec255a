import type { Clock } from './clock.js';
import type { DiskService } from './disk-service.js';
import type { ErrorFactory } from './errors.js';
import type { HostFacts } from './host-facts.js';
import type { Logger } from './logger.js';
import type { Network } from './network.js';
import type { PumpHooks } from './pump-hooks.js';
import type { Random } from './random.js';
import type { Runner } from './runner.js';
import type { Supervisor } from './supervisor.js';
import type { VmPaths } from './vm-paths.js';
import type { VmUid } from './vm-spec.js';

/** The settings of an operator that concern backends: flags of the agent, under the flags' names in camel case. */
export interface BackendSettings {
  /** `--ch-bin`, `--firmware`, `--vfkit-bin`, `--qemu-bin`. */
  readonly chBin: string;
  readonly firmware: string;
  readonly vfkitBin: string;
  /** Absent: the name for the host's architecture, on PATH. */
  readonly qemuBin?: string;
  /** `--guest-network`: `user` is only taken when it was asked for; `plugin` means taps of a network plugin. */
  readonly guestNetwork: 'user' | 'plugin';
}

/**
 * The host's services for one backend: every run-time value that a plugin needs of the agent, so that it imports types
 * only. Frozen, and the same for the agent's life.
 *
 * Call order: given to `BackendPlugin.create`; its members may be used from then on, at any time and all at once, as
 * far as their own contracts allow. None of them leads to the agent's container.
 */
export interface BackendHost {
  /** The contract number of this agent; the plugin's own was compared with it before any of its code ran. */
  readonly contract: number;
  readonly facts: HostFacts;
  readonly settings: BackendSettings;
  /** Adds the backend's name to each line. */
  readonly logger: Logger;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly random: Random;
  readonly supervisor: Supervisor;
  readonly disks: DiskService;
  readonly pumpHooks: PumpHooks;
  readonly errors: ErrorFactory;
  /**
   * Where the files of one life stand, from its uid alone. For the members that are told no more than a uid (a console
   * to open, ports to publish), which may be the first call of all after a restart of the agent.
   *
   * The same answer for the agent's life, also for a uid that has no files; makes nothing. An instance's own `paths`
   * come before it where they are known: they may be of a former run directory. Rejects only when the host is gone.
   */
  readonly vmPaths: (uid: VmUid) => Promise<VmPaths>;
  /** The network plugin's part; `undefined` where none is composed (user-mode networking, macOS). */
  readonly network: Network | undefined;
}
