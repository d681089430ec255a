/**
 * The cloud-init seed (NoCloud) of a VM. Byte-identical for equal input.
 */
import type { VmSpec, VmUid } from './vm-spec.js';

export interface SeedRequest {
  readonly uid: VmUid;
  readonly spec: VmSpec;
  /** MAC of the first NIC (eth0). */
  readonly mac: string;
  /** MAC of the named network's NIC (eth1), when the spec has one. */
  readonly namedMac?: string;
  readonly path: string;
  readonly keysFolder: string;
}

export interface BuiltSeed {
  /** The guest's SSH host keys, public lines, for reports. */
  readonly hostKeys: readonly string[];
}

export interface SeedSource {
  /**
   * Builds the seed volume, atomically. Host keys are made at the first call of a life and kept. `instance-id` is the uid:
   * it decides what cloud-init takes for a first boot, so it never changes within a life. Idempotent. Permanent: user-data
   * that is neither `#cloud-config` nor a script nor another form that cloud-init knows by its first line.
   */
  readonly build: (request: SeedRequest, signal: AbortSignal) => Promise<BuiltSeed>;
}
