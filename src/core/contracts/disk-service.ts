/**
 * Disks, offered to backends as a service of the host, so that no backend copies an image in its own way.
 */
import type { VmUid } from './vm-spec.js';

export interface RootDiskRequest {
  readonly uid: VmUid;
  /** The prepared raw image. */
  readonly basePath: string;
  /** Size in whole GiB, [1, 2^20]; absent: the image's size rounded up. */
  readonly sizeGib?: number;
  /** Where it shall stand. */
  readonly path: string;
}

export interface VolumeRequest {
  readonly uid: VmUid;
  readonly name: string;
  readonly sizeGib: number;
}

export interface DiskService {
  /**
   * Makes the root disk: a reflink of the image where the file system can, else a sparse copy, grown to its size. It is
   * built beside and renamed, so that a torn one never stands at its path. An existing disk is replaced: the caller has
   * made sure that its VM never attempted a boot. Permanent: out of range, or smaller than the image.
   */
  readonly cloneRootDisk: (request: RootDiskRequest, signal: AbortSignal) => Promise<{ readonly sizeBytes: number }>;
  /** Size in bytes of a disk that stands, undefined where none does. */
  readonly sizeOf: (path: string) => Promise<number | undefined>;
  /** Grows a disk in place; never shrinks (permanent). Idempotent. Only while no VMM has it open. */
  readonly growDisk: (path: string, sizeGib: number, signal: AbortSignal) => Promise<void>;
  /**
   * The volume's path, created on first use and claimed for this VM. Permanent when another VM uses it, or when it would
   * have to shrink. Idempotent for its owner.
   */
  readonly ensureVolume: (request: VolumeRequest, signal: AbortSignal) => Promise<{ readonly path: string }>;
  /** Lets go of all volumes of a VM. Their files stay: a volume is never deleted with its VM. Idempotent. */
  readonly releaseVolumes: (uid: VmUid, signal: AbortSignal) => Promise<void>;
}
