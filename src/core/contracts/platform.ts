import type { Capabilities } from './capabilities.js';
import type { ConsoleSource } from './console-source.js';
import type { PortPublisher } from './port-publisher.js';
import type { Provisioner } from './provisioner.js';

/**
 * What the composition root made of this host's plugins: the engine and the control plane see no more of a platform.
 *
 * Call order and concurrency: made once a start, after `capabilities` and `preflight` answered; from then on its
 * members are used as their own contracts say.
 */
export interface Platform {
  /** The pinned backend's name. */
  readonly backend: string;
  readonly capabilities: Capabilities;
  readonly provisioner: Provisioner;
  readonly console: ConsoleSource;
  readonly publisher: PortPublisher | undefined;
  /**
   * The guests' subnet, polled: it may be known late, or never (user-mode networks); never invented. Once known it
   * stays for the agent's life. Never rejects.
   */
  readonly guestCidr: () => Promise<string | undefined>;
  /** Named networks, sorted. */
  readonly hostNetworks: readonly string[];
}
