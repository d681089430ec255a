import type { VmUid } from './vm-spec.js';

/** How a VM's devices shall stand on the host. */
export interface TapRequest {
  readonly uid: VmUid;
  /** MAC of the first NIC; the reservation is keyed on it. */
  readonly mac: string;
  /** The address that `reserveIp` gave. */
  readonly address: string;
  /** Adds a second tap on this named network's bridge, never instead of the first. */
  readonly named?: { readonly network: string; readonly mac: string };
}

/**
 * Host networking as one VM sees it: an address on the host's own subnet and the taps that lead to it. Host-wide setup
 * is `HostNetwork`'s and never happens here.
 *
 * Call order inside `Provisioner.boot`: `reserveIp`, `createTap`; inside `destroy`: `deleteTap`. `address`,
 * `networkAddress`, `tapName` and `netTapName` at any time, also as the first call after a restart of the agent.
 * Concurrency: the first three are serial for one VM; the others may run beside any. Calls for several VMs run at once.
 * All are idempotent, and may be asked for a VM that is not there. Errors are retryable where nothing else is said.
 */
export interface Network {
  /**
   * The VM's sticky address, allocated now if it has none. The same answer for the whole life. Resolved means that no
   * other life gets it before `deleteTap`. Retryable when none is left, because one may be freed; permanent where
   * another life has this MAC.
   */
  readonly reserveIp: (uid: VmUid, mac: string, signal: AbortSignal) => Promise<string>;
  /** The address already reserved; undefined: none is. Never allocates. */
  readonly address: (uid: VmUid, signal: AbortSignal) => Promise<string | undefined>;
  /**
   * What the site's DHCP server granted the named-network NIC; undefined while it is not known, or has none. Learned
   * from what passes by, so it may change within a life, and may be late after a restart. Asks nobody on that network.
   */
  readonly networkAddress: (uid: VmUid, signal: AbortSignal) => Promise<string | undefined>;
  /**
   * Creates the tap (and the named one), up and on their bridges, with the DHCP reservation in force. Called at every
   * boot: devices of ours that stand already are made right and kept. On rejection no tap that this call made is left.
   * Permanent: a name that a foreign device holds, or a named network that this host does not serve.
   */
  readonly createTap: (request: TapRequest, signal: AbortSignal) => Promise<void>;
  /**
   * Removes both taps, the reservation and the lease. Called once no VMM has a tap open. Resolved means that none of
   * them is left; on rejection what could not be removed stays known, and the same call tries it again. Not skipped
   * because the signal is aborted: nobody else would come for what is left.
   */
  readonly deleteTap: (uid: VmUid, signal: AbortSignal) => Promise<void>;
  /**
   * Device name of the first NIC's tap, at most 15 bytes. Derived from the uid alone: one answer for the whole life,
   * whether or not the device is there. Never rejects.
   */
  readonly tapName: (uid: VmUid) => Promise<string>;
  /** Device name of the named network's tap: as `tapName`, and never the same name. */
  readonly netTapName: (uid: VmUid) => Promise<string>;
}
