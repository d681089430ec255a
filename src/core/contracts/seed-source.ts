import type { VmSpec, VmUid } from './vm-spec.js';

/** What a seed is made of. */
export interface SeedRequest {
  readonly uid: VmUid;
  readonly spec: VmSpec;
  /** MAC of the first NIC (eth0). */
  readonly mac: string;
  /** MAC of the named network's NIC (eth1), when the spec has one. */
  readonly namedMac?: string;
  /** Where the volume shall stand. */
  readonly path: string;
  /** Where the guest's SSH host keys are kept, over all its seeds. */
  readonly keysFolder: string;
}

/** What is told of a seed that stands. */
export interface BuiltSeed {
  /** The guest's SSH host keys, public lines, for reports. */
  readonly hostKeys: readonly string[];
}

/**
 * The cloud-init seed (NoCloud) of a VM. Byte-identical for equal input.
 *
 * Call order: `build` after the root disk and the volumes stand, before the first boot, and before a later one where
 * the seed is missing. Concurrency: calls for one VM are serial, for several VMs at once.
 */
export interface SeedSource {
  /**
   * Builds the seed volume, atomically. Host keys are made at the first call of a life and kept. `instance-id` is the
   * uid: it decides what cloud-init takes for a first boot, so it never changes within a life. Idempotent: what stands
   * is replaced by the same bytes. Resolved means that the whole volume stands at its path, on disk; on rejection, also
   * by the signal, what stood there still does. Permanent: user-data that is neither `#cloud-config` nor a script nor
   * another form that cloud-init knows by its first line, or no tool on this host to build it with.
   */
  readonly build: (request: SeedRequest, signal: AbortSignal) => Promise<BuiltSeed>;
}
