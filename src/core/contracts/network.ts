/**
 * Host networking as one VM sees it: an address on the host's own subnet and the taps that lead to it. Host-wide setup
 * is `HostNetwork`'s and never happens here.
 *
 * Call order inside `Provisioner.boot`: `reserveIp`, `createTap`; inside `destroy`: `deleteTap`. All are idempotent;
 * calls for one VM are serial, calls for several VMs run at once.
 */
import type { VmUid } from './vm-spec.js';

export interface TapRequest {
  readonly uid: VmUid;
  /** MAC of the first NIC; the reservation is keyed on it. */
  readonly mac: string;
  /** The address that `reserveIp` gave. */
  readonly address: string;
  /** Adds a second tap on this named network's bridge, never instead of the first. */
  readonly named?: { readonly network: string; readonly mac: string };
}

export interface Network {
  /** The VM's sticky address, allocated now if it has none. The same answer for the whole life. */
  readonly reserveIp: (uid: VmUid, mac: string, signal: AbortSignal) => Promise<string>;
  /** The address already reserved. Never allocates. */
  readonly address: (uid: VmUid, signal: AbortSignal) => Promise<string | undefined>;
  /** What the site's DHCP server granted the named-network NIC; undefined while it is not known, or has none. */
  readonly networkAddress: (uid: VmUid, signal: AbortSignal) => Promise<string | undefined>;
  /**
   * Creates the tap (and the named one), up and on their bridges, with the DHCP reservation in force. A name that a
   * foreign device holds is a permanent error.
   */
  readonly createTap: (request: TapRequest, signal: AbortSignal) => Promise<void>;
  /** Removes both taps, the reservation and the lease. Resolved means that none of them is left. */
  readonly deleteTap: (uid: VmUid, signal: AbortSignal) => Promise<void>;
  /** Device name of the first NIC's tap. */
  readonly tapName: (uid: VmUid) => Promise<string>;
  /** Device name of the named network's tap. */
  readonly netTapName: (uid: VmUid) => Promise<string>;
}
