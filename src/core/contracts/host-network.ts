import type { VmUid } from './vm-spec.js';

/** A life's address on the host's own subnet, as its record remembers it. */
export interface Reservation {
  readonly uid: VmUid;
  readonly mac: string;
  readonly address: string;
}

/**
 * A life whose address is not known: its record can't be read (its MAC follows from its uid), or it was not written down
 * before the agent that started its VMM died.
 */
export type LostReservation = Omit<Reservation, 'address'>;

/** One thing of the host that was looked at, for people. `fail`: no guest can have a network so. */
export interface NetworkFinding {
  /** A word or two: `forwarding`, `bridge`. */
  readonly what: string;
  readonly level: 'ok' | 'warn' | 'fail';
  /** What was found. */
  readonly detail: string;
  /** What to do about it; absent: nothing. */
  readonly next?: string;
  /** It is not there, and is made at the agent's start: well as long as none runs. */
  readonly atStart?: true;
}

/**
 * Host-wide networking. The composition root alone calls it.
 *
 * Call order: `verifyNetworks`, `checkUplink`, `ensureBridge`, `replayReservations`, `startDhcp`; then `repair` now and
 * then; `close` at the end. `examine`, `guestCidr` and `hostNetworks` at any time. The order is load-bearing: a missing bridge is
 * found before anything is created, an overlap before it can cost the host its own route, and DHCP answers only when
 * every surviving guest's reservation is known again. A rejection of one of the first five stops the start.
 * Concurrency: the members that change something are called one at a time; from `startDhcp` on, `Network` works beside
 * `repair`, which therefore touches no device of a VM that is being attached or detached.
 *
 * A signal bounds the waiting for foreign tools; what is half done is made true by the same call again.
 */
export interface HostNetwork {
  /**
   * Checks that each named network's bridge exists. Changes nothing. Rejects, permanent, in the words of
   * `--host-network`.
   */
  readonly verifyNetworks: (signal: AbortSignal) => Promise<void>;
  /**
   * Refuses, permanent, a guest subnet that overlaps the host's uplink, and names both; where guests exist, whose
   * subnet can't be changed under them, it only says so. Changes nothing. Retryable where the host's routes can't be
   * read.
   */
  readonly checkUplink: (signal: AbortSignal) => Promise<void>;
  /**
   * Makes bridge, NAT and isolation true. Idempotent, and rewrites nothing that is right: guests of a former agent keep
   * their connections. Permanent: a tool is missing, or a device of that name is somebody else's.
   */
  readonly ensureBridge: (signal: AbortSignal) => Promise<void>;
  /**
   * Puts the reservations of all records back, before DHCP answers. Called once a start, with every record that has an
   * address; from then on `Network` answers by it. Idempotent. One that can't be served (outside the subnet, an address
   * of another life) is left out and told in the log, and takes no other's place. No error is permanent.
   *
   * A life whose record can't be read keeps what a former agent had DHCP answer for its MAC, as far as that can be found
   * out on the host: its guest may run, and its address is given to nobody else.
   */
  readonly replayReservations: (
    reservations: readonly (Reservation | LostReservation)[],
    signal: AbortSignal,
  ) => Promise<void>;
  /**
   * Starts to answer DHCP and DNS, or takes over a server that a former agent left running. Idempotent. Resolved means
   * that guests are answered. Permanent: the server's program is missing; a port in use is retryable.
   */
  readonly startDhcp: (signal: AbortSignal) => Promise<void>;
  /** The guests' subnet, `10.77.1.0/24`. Chosen when the plugin was created, one answer for its life. Never rejects. */
  readonly guestCidr: () => Promise<string>;
  /** Names of the named networks, sorted. Changes only with a restart; empty where none is declared. Never rejects. */
  readonly hostNetworks: () => Promise<readonly string[]>;
  /**
   * Puts back what drifted (a flushed rule, a missing bridge) and takes away what belongs to no life. Called now and
   * then. Idempotent: with nothing to mend it changes nothing and resolves with an empty list, else with a sentence for
   * each thing it mended. Rejects, retryable, at what it could not mend; the next call tries again.
   */
  readonly repair: (signal: AbortSignal) => Promise<readonly string[]>;
  /**
   * What an operator should know of the network as it stands, one finding each, well or not. Changes nothing. At any time,
   * also before anything was made, and beside another agent that runs. Rejects, retryable, where the host can't be looked
   * at.
   */
  readonly examine: (signal: AbortSignal) => Promise<readonly NetworkFinding[]>;
  /**
   * Takes everything of ours down: server, rules, taps, bridge. Only when the operator asks, and no guest runs.
   * Idempotent; resolved means that nothing of ours is left. Rejects, retryable, at what would not go; the same call
   * goes on from there. Not skipped because the signal is aborted.
   */
  readonly teardown: (signal: AbortSignal) => Promise<void>;
  /**
   * Drops handles and leaves the network standing: guests outlive the agent. Called last. Idempotent, also before
   * anything was started. Never rejects.
   */
  readonly close: () => Promise<void>;
}
