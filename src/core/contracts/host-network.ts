/**
 * Host-wide networking. The composition root alone calls it, in this order: `verifyNetworks`, `checkUplink`,
 * `ensureBridge`, `replayReservations`, `startDhcp`; then `repair` now and then; `close` at the end.
 *
 * The order is load-bearing: a missing bridge is found before anything is created, an overlap before it can cost the
 * host its own route, and DHCP answers only when every surviving guest's reservation is known again.
 */
import type { VmUid } from './vm-spec.js';

export interface Reservation {
  readonly uid: VmUid;
  readonly mac: string;
  readonly address: string;
}

export interface HostNetwork {
  /** Checks that each named network's bridge exists. Rejects, permanent, in the words of `--host-network`. */
  readonly verifyNetworks: (signal: AbortSignal) => Promise<void>;
  /** Refuses a guest subnet that overlaps the host's uplink. */
  readonly checkUplink: (signal: AbortSignal) => Promise<void>;
  /** Makes bridge, NAT and isolation true. Idempotent. */
  readonly ensureBridge: (signal: AbortSignal) => Promise<void>;
  /** Puts the reservations of all records back, before DHCP answers. */
  readonly replayReservations: (reservations: readonly Reservation[], signal: AbortSignal) => Promise<void>;
  /** Starts to answer DHCP and DNS, or takes over a server that a former agent left running. */
  readonly startDhcp: (signal: AbortSignal) => Promise<void>;
  /** The guests' subnet. */
  readonly guestCidr: () => Promise<string>;
  /** Names of the named networks, sorted. Changes only with a restart. */
  readonly hostNetworks: () => Promise<readonly string[]>;
  /** Puts back what drifted (a flushed rule, a missing bridge). Resolves with what it mended. */
  readonly repair: (signal: AbortSignal) => Promise<readonly string[]>;
  /** Takes everything of ours down. Only when the operator asks. */
  readonly teardown: (signal: AbortSignal) => Promise<void>;
  /** Drops handles and leaves the network standing: guests outlive the agent. */
  readonly close: () => Promise<void>;
}
