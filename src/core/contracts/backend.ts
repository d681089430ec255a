/**
 * What a backend package exports, and all that it is handed.
 *
 * A package names its entry in the `eitri` block of its package.json; the entry exports `backend`, a `BackendPlugin`.
 * It imports contracts as types only and takes every run-time value from its host: it may live in another node_modules
 * tree, beside a second copy of ours.
 */
import type { Clock, Random } from './clock.js';
import type { ConsoleSource } from './console-source.js';
import type { DiskService } from './disk-service.js';
import type { ErrorFactory } from './errors.js';
import type { HostFacts } from './host-facts.js';
import type { HostNetwork } from './host-network.js';
import type { Logger } from './logger.js';
import type { Network } from './network.js';
import type { PortPublisher } from './port-publisher.js';
import type { Provisioner } from './provisioner.js';
import type { PumpHooks } from './pump-hooks.js';
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

/** The host's services for a backend. */
export interface BackendHost {
  readonly contract: number;
  readonly facts: HostFacts;
  readonly settings: BackendSettings;
  readonly logger: Logger;
  readonly runner: Runner;
  readonly clock: Clock;
  readonly random: Random;
  readonly supervisor: Supervisor;
  readonly disks: DiskService;
  readonly pumpHooks: PumpHooks;
  readonly errors: ErrorFactory;
  /**
   * Where the files of one life stand, from its uid alone. For the members that are told no more than a uid (a console to
   * open, ports to publish), which may be the first call of all after a restart of the agent.
   */
  readonly vmPaths: (uid: VmUid) => VmPaths;
  /** The network plugin's part; `undefined` where none is composed (user-mode networking, macOS). */
  readonly network: Network | undefined;
}

/** A backend that runs VMs. `publisher` is undefined where its capability `publishesPorts` is unset. */
export interface ProvisionerBackend {
  readonly provisioner: Provisioner;
  readonly console: ConsoleSource;
  readonly publisher: PortPublisher | undefined;
}

/** A backend that gives guests a network. */
export interface NetworkBackend {
  readonly network: Network;
  readonly hostNetwork: HostNetwork;
  readonly publisher: PortPublisher | undefined;
}

export type BackendPlugin =
  | {
      readonly contract: number;
      readonly kind: 'provisioner';
      readonly name: string;
      readonly create: (host: BackendHost, signal: AbortSignal) => Promise<ProvisionerBackend>;
    }
  | {
      readonly contract: number;
      readonly kind: 'network';
      readonly name: string;
      readonly create: (host: BackendHost, signal: AbortSignal) => Promise<NetworkBackend>;
    };

/** The `eitri` block of a plugin's package.json. */
export interface BackendManifest {
  readonly contract: number;
  readonly kind: 'provisioner' | 'network';
  readonly name: string;
  readonly os: readonly string[];
  /** What bootstrap can't supply. */
  readonly needs: {
    readonly arch?: readonly string[];
    readonly kvm?: boolean;
    readonly network?: boolean;
  };
  /** The module to load, relative to the package. */
  readonly entry: string;
}
