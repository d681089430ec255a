/**
 * Disks in the files of a `FakeHost`: a content, a size, an inode.
 */
import type { DiskService, RootDiskRequest, VmUid, VolumeRequest } from '@eitri/core/contracts';
import { GIB, MAX_DISK_GIB, permanent } from '@eitri/core/kit';
import type { CallLog } from './call-log.js';
import type { FakeHost } from './fake-host.js';

/** What a `MemoryDisks` is joined to. */
export interface MemoryDisksOptions {
  readonly host: FakeHost;
  readonly calls?: CallLog;
  /** Where volumes stand. */
  readonly volumeFolder?: string;
}

/** A `DiskService` whose disks are files of a `FakeHost`. */
export class MemoryDisks implements DiskService {
  readonly calls: CallLog;
  /** Which VM uses which volume, by path. It belongs to the agent's records, so it is handed on by the test. */
  readonly claims: Map<string, VmUid>;

  constructor(
    private readonly options: MemoryDisksOptions,
    claims = new Map<string, VmUid>(),
  ) {
    this.calls = options.calls ?? options.host.calls;
    this.claims = claims;
  }

  readonly cloneRootDisk = (request: RootDiskRequest, signal: AbortSignal): Promise<{ readonly sizeBytes: number }> =>
    this.calls.around('diskService.cloneRootDisk', request.uid, () => {
      signal.throwIfAborted();
      const base = this.options.host.files.get(request.basePath);
      if (base === undefined) throw permanent(`no such image: ${request.basePath}`, { code: 'ImageNotFound' });
      const sizeGib = request.sizeGib ?? Math.ceil(base.sizeBytes / GIB);
      if (!Number.isInteger(sizeGib) || sizeGib < 1 || sizeGib > MAX_DISK_GIB) {
        throw permanent(`disk of ${sizeGib.toString()} GiB is out of range [1, ${MAX_DISK_GIB.toString()}]`);
      }
      const sizeBytes = sizeGib * GIB;
      if (sizeBytes < base.sizeBytes) {
        throw permanent(`disk of ${sizeGib.toString()} GiB is smaller than its image`, { code: 'DiskTooSmall' });
      }
      this.options.host.writeFile(request.path, base.content, sizeBytes);
      return { sizeBytes };
    });

  readonly sizeOf = (path: string): Promise<number | undefined> =>
    this.calls.around('diskService.sizeOf', undefined, () => this.options.host.files.get(path)?.sizeBytes);

  readonly growDisk = (path: string, sizeGib: number, signal: AbortSignal): Promise<void> =>
    this.calls.around('diskService.growDisk', undefined, () => {
      signal.throwIfAborted();
      const now = this.options.host.files.get(path)?.sizeBytes ?? 0;
      if (sizeGib * GIB < now)
        throw permanent(`${path} would shrink to ${sizeGib.toString()} GiB`, { code: 'DiskTooSmall' });
      if (sizeGib * GIB > now) this.options.host.resizeFile(path, sizeGib * GIB);
    });

  readonly ensureVolume = (request: VolumeRequest, signal: AbortSignal): Promise<{ readonly path: string }> =>
    this.calls.around('diskService.ensureVolume', request.uid, () => {
      signal.throwIfAborted();
      const path = `${this.options.volumeFolder ?? '/state/volumes'}/${request.name}.raw`;
      const owner = this.claims.get(path);
      if (owner !== undefined && owner !== request.uid) throw permanent(`volume ${request.name} is used by ${owner}`);
      const sizeBytes = request.sizeGib * GIB;
      const there = this.options.host.files.get(path);
      if (there === undefined) this.options.host.writeFile(path, `volume ${request.name}`, sizeBytes);
      else if (there.sizeBytes > sizeBytes)
        throw permanent(`volume ${request.name} would shrink`, { code: 'DiskTooSmall' });
      else if (there.sizeBytes < sizeBytes) this.options.host.resizeFile(path, sizeBytes);
      this.claims.set(path, request.uid);
      return { path };
    });

  readonly releaseVolumes = (uid: VmUid, signal: AbortSignal): Promise<void> =>
    this.calls.around('diskService.releaseVolumes', uid, () => {
      signal.throwIfAborted();
      for (const [path, owner] of this.claims) if (owner === uid) this.claims.delete(path);
    });
}
