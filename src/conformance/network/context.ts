/**
 * What a factory hands to each case of the network's suite: the two halves of the network, ways to look at the host
 * without them, and ways to make things go wrong.
 *
 * Probes look from outside, with the host's own tools and a DHCP client on the bridge.
 */
import type { HostNetwork, Network, VmUid } from '@eitri/core/contracts';

/** One life of an agent, as far as its network goes. */
export interface NetworkLife {
  readonly network: Network;
  readonly hostNetwork: HostNetwork;
}

/** A VM as its network is told of it: its uid and both MACs. */
export interface NetworkVm {
  readonly uid: VmUid;
  readonly mac: string;
  readonly namedMac: string;
}

/** A tap as the host sees it. */
export interface ProbedTap {
  readonly name: string;
  /** The bridge that it is a port of. */
  readonly bridge: string | undefined;
  readonly up: boolean;
}

/** What is true on the host, found out without asking the network under test. */
export interface NetworkProbes {
  /** All taps of guests, and whatever else bears such a name. */
  readonly taps: () => Promise<readonly ProbedTap[]>;
  /** The guests' bridge; undefined: there is none. */
  readonly bridge: () => Promise<{ readonly name: string; readonly mac: string } | undefined>;
  /** How many rules let guests out under the host's own address. */
  readonly natRules: () => Promise<number>;
  /** How many processes answer DHCP on the guests' bridge. */
  readonly dhcpServers: () => Promise<number>;
  /** What a client with this MAC on the guests' bridge is given now, asking anew; undefined: it hears nothing. */
  readonly lease: (mac: string) => Promise<string | undefined>;
}

/** The knobs. Each acts on the host and not on the network's code. */
export interface NetworkFaults {
  /** A device of this name is there already, and somebody else's. */
  readonly foreignDevice?: (name: string) => Promise<void>;
  /** The host has a route that overlaps the guests' subnet. */
  readonly overlap?: () => Promise<void>;
  /** The bridge of the named network is gone. */
  readonly removeNamedBridge?: () => Promise<void>;
  /** Somebody flushes the host's packet filter. */
  readonly flushRules?: () => Promise<void>;
  /** Somebody deletes the guests' bridge. */
  readonly removeBridge?: () => Promise<void>;
  /** Somebody takes a tap off its bridge. */
  readonly detachTap?: (name: string) => Promise<void>;
  /** The DHCP server dies. Resolves when it is gone. */
  readonly killDhcp?: () => Promise<void>;
}

/** Names of the faults that a context may offer. */
export type NetworkFaultName = keyof NetworkFaults;

/** What one case works with: the network under test, its host, and what can be done to both. */
export interface NetworkContext extends NetworkLife {
  /** The agent restarts: new instances over the same host, to which nothing was replayed; the old ones are not used again. */
  readonly restart: () => Promise<NetworkLife>;
  /** A VM that has a record and no network yet. */
  readonly newVm: () => NetworkVm;
  /** A named network that this host serves. */
  readonly named: { readonly name: string; readonly bridge: string };
  /** No more guests than this have room in the subnet; small, since all of it is reserved once. */
  readonly mostGuests: number;
  readonly probes: NetworkProbes;
  readonly faults: NetworkFaults;
  /** Ends and removes all that this context made, also after a case failed. */
  readonly dispose: () => Promise<void>;
}
