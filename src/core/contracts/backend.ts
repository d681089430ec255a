import type { BackendHost } from './backend-host.js';
import type { ConsoleSource } from './console-source.js';
import type { HostNetwork } from './host-network.js';
import type { Network } from './network.js';
import type { PortPublisher } from './port-publisher.js';
import type { Provisioner } from './provisioner.js';

/** What of the operator's and the agent's own settings concerns the host's network, and nobody else. */
export interface NetworkSettings {
  /**
   * Where the guests' subnet may come from, in order of precedence: what this state has used before (the agent keeps what
   * `HostNetwork.guestCidr` answers), `--bridge-cidr`, the control plane's suggestion at enrollment. The plugin chooses,
   * because only it knows what a platform may fall back to.
   */
  readonly persistedCidr?: string;
  readonly bridgeCidr?: string;
  readonly suggestedCidr?: string;
  /** `--host-network`: names no two of which are alike, and the bridge of each. */
  readonly namedNetworks: readonly { readonly name: string; readonly bridge: string }[];
  /** `--guest-isolation`: guests of one host do not reach each other through its bridge. */
  readonly guestIsolation: boolean;
  /** Marks devices as this state directory's own; stable for its life. At most 128 of `[a-z0-9-]`. */
  readonly stateId: string;
  /** `--run-dir`, made already. */
  readonly runDir: string;
}

/**
 * The host's services for a network plugin. A warning or an error that it logs with the field `why`, a sentence, and where
 * there is one `next`, the step to take, is told to the operator as an event too.
 */
export interface NetworkHost extends BackendHost {
  readonly networkSettings: NetworkSettings;
  /**
   * The uids of all lives that have a record, readable or not. Rejects where that can't be told: then nothing may be
   * taken for an orphan.
   */
  readonly recordedUids: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
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

/**
 * What the entry of a backend package exports, under the name `backend`. The entry is named in the `eitri` block of its
 * package.json (`BackendManifest`), and says the same `contract`, `kind` and `name` as that block.
 *
 * Of the contracts a plugin imports types alone; run-time values come from its host, because the plugin may live in
 * another node_modules tree, beside a second copy of ours.
 *
 * Call order: `create` once for each run of the agent, before any guest is touched; a network's before the
 * provisioner's, whose host holds it. It makes objects, and looks at nothing that a VM owns. A rejection stops the
 * start of the agent, with its sentence; the signal is that of the start.
 */
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
      readonly create: (host: NetworkHost, signal: AbortSignal) => Promise<NetworkBackend>;
    };
