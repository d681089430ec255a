import type { VmUid } from './vm-spec.js';

/** A root disk to make. */
export interface RootDiskRequest {
  readonly uid: VmUid;
  /** The prepared raw image. */
  readonly basePath: string;
  /** Size in whole GiB, [1, 2^20]; absent: the image's size rounded up. */
  readonly sizeGib?: number;
  /** Where it shall stand. */
  readonly path: string;
}

/** A volume that a VM needs. */
export interface VolumeRequest {
  readonly uid: VmUid;
  /** Same grammar as a VM id. Names the volume on this host, whichever VM has it. */
  readonly name: string;
  /** Size in whole GiB, [1, 2^20]. */
  readonly sizeGib: number;
}

/**
 * Disks, offered to backends as a service of the host, so that no backend copies an image in its own way.
 *
 * Call order for one VM: `cloneRootDisk`, by `Provisioner.prepareRootDisk`; `ensureVolume` for each volume in spec
 * order; then `growDisk` before any later boot; `releaseVolumes` when the VM is destroyed. Each may be the first call
 * after a restart of the agent. Concurrency: calls for one VM are serial, for several VMs at once, also on one volume's
 * name: one of them has it, the others are refused. A signal leaves no torn file at a disk's path.
 */
export interface DiskService {
  /**
   * Makes the root disk: a reflink of the image where the file system can, else a sparse copy, grown to its size. It is
   * built beside and renamed, so that a torn one never stands at its path. An existing disk is replaced: the caller has
   * made sure that its VM never attempted a boot, and then a second call makes the same disk again. Permanent: out of
   * range, or smaller than the image.
   */
  readonly cloneRootDisk: (request: RootDiskRequest, signal: AbortSignal) => Promise<{ readonly sizeBytes: number }>;
  /**
   * Size in bytes of a disk that stands, undefined where none does. Changes nothing. Permanent: what stands there is no
   * regular file. No signal: one look, which does not wait.
   */
  readonly sizeOf: (path: string) => Promise<number | undefined>;
  /**
   * Grows a disk in place. Called only while no VMM has it open. Idempotent: one of that size is left. Resolved means
   * that it has exactly this size. Permanent: out of range, or it would shrink. A disk that is missing is retryable and
   * never made anew: what was on it may come back with its mount.
   */
  readonly growDisk: (path: string, sizeGib: number, signal: AbortSignal) => Promise<void>;
  /**
   * The volume's path, created on first use and claimed for this VM; grown where the spec asks for more. Idempotent for
   * its owner. Resolved means that no other VM gets it before `releaseVolumes`. Permanent: another VM has it, it would
   * have to shrink, the name or the size is none.
   */
  readonly ensureVolume: (request: VolumeRequest, signal: AbortSignal) => Promise<{ readonly path: string }>;
  /**
   * Lets go of all volumes of a VM. Their files stay: a volume is never deleted with its VM. Idempotent, also for a VM
   * that has none. No error is permanent.
   */
  readonly releaseVolumes: (uid: VmUid, signal: AbortSignal) => Promise<void>;
}
