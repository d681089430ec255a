import type { BackendHost } from './backend-host.js';
import type { ConsoleSource } from './console-source.js';
import type { HostNetwork } from './host-network.js';
import type { Network } from './network.js';
import type { PortPublisher } from './port-publisher.js';
import type { Provisioner } from './provisioner.js';

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
      readonly create: (host: BackendHost, signal: AbortSignal) => Promise<NetworkBackend>;
    };
