/**
 * Disks of guests on this host: root disks cloned from images, and volumes that outlive their VMs.
 *
 * Owns `volumes/` (the files and their claims) and, while it builds, `<disk>.partial` beside a disk. Never opens a disk
 * that a VMM has open, and never deletes a volume. Lock order: a volume's name is the only lock, and nothing is taken
 * under it.
 */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { HOST_FACTS, RANDOM, RUNNER } from '@eitri/core/contracts';
import type {
  DiskService,
  HostFacts,
  Random,
  RootDiskRequest,
  Runner,
  VmUid,
  VolumeRequest,
} from '@eitri/core/contracts';
import { ID_RULE, isVmId, KeyedMutex, permanent, retryable } from '@eitri/core/kit';
import { inject, injectable } from 'tsyringe';
import { ensureFolder, PASSAGE_FOLDER_MODE } from '../host/atomic-file.js';
import { placeFile } from '../host/place-file.js';
import { cloneFile, createSparse, diskSize, forcedReflink, setSize, type Reflink } from './disk-files.js';
import { diskBytes, refuseShrink, rootDiskBytes } from './disk-sizes.js';
import { VolumeClaims } from './volume-claims.js';

export interface HostDiskOptions {
  /** `<state>/volumes`. */
  readonly volumesFolder: string;
  /** Default: the file system's forced clone. */
  readonly reflink?: Reflink;
}

@injectable()
export class HostDiskService implements DiskService {
  private readonly claims: VolumeClaims;
  private readonly byName = new KeyedMutex();

  constructor(
    @inject(RUNNER) private readonly runner: Runner,
    @inject(HOST_FACTS) private readonly facts: HostFacts,
    @inject(RANDOM) random: Random,
    private readonly options: HostDiskOptions,
  ) {
    this.claims = new VolumeClaims(options.volumesFolder, random);
  }

  readonly cloneRootDisk = async (
    request: RootDiskRequest,
    signal: AbortSignal,
  ): Promise<{ readonly sizeBytes: number }> => {
    signal.throwIfAborted();
    const { basePath, path, sizeGib } = request;
    // Out of range is said even where the image is gone.
    if (sizeGib !== undefined) diskBytes('a root disk', sizeGib);
    const base = await stat(basePath).catch((cause: unknown) => {
      throw retryable(`look at the image ${basePath}`, { cause });
    });
    const sizeBytes = rootDiskBytes(base.size, sizeGib);
    const partial = `${path}.partial`;
    await rm(partial, { force: true });
    try {
      const { reflink = forcedReflink } = this.options;
      await cloneFile(basePath, partial, { runner: this.runner, facts: this.facts, reflink }, signal);
      signal.throwIfAborted();
      await setSize(partial, sizeBytes);
      signal.throwIfAborted();
      await placeFile(partial, path);
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw retryable(`make the root disk ${path} from ${basePath}`, { cause });
    } finally {
      // After the rename there is none; after a failure or an abort it must not keep its room.
      await rm(partial, { force: true });
    }
    return { sizeBytes };
  };

  readonly sizeOf = async (path: string): Promise<number | undefined> => await diskSize(path);

  readonly growDisk = async (path: string, sizeGib: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    const targetBytes = diskBytes('a disk', sizeGib);
    const currentBytes = await diskSize(path);
    if (currentBytes === undefined) throw retryable(`the disk ${path}, which should grow, is not there`);
    refuseShrink(`the disk ${path}`, 'disk', currentBytes, targetBytes);
    if (targetBytes > currentBytes) await setSize(path, targetBytes);
  };

  readonly ensureVolume = async (request: VolumeRequest, signal: AbortSignal): Promise<{ readonly path: string }> => {
    const { name, uid } = request;
    if (!isVmId(name)) {
      throw permanent(`the volume name ${JSON.stringify(name)} is not ${ID_RULE}`, { code: 'SpecInvalid' });
    }
    const targetBytes = diskBytes(`volume ${name}`, request.sizeGib);
    const path = join(this.options.volumesFolder, `${name}.raw`);
    return await this.byName.run(
      name,
      async () => {
        signal.throwIfAborted();
        // The VMM's own user passes through to its volumes, and lists nothing.
        await ensureFolder(this.options.volumesFolder, PASSAGE_FOLDER_MODE);
        const { isNew } = await this.claims.take(name, uid);
        try {
          await this.sizeVolume(name, path, targetBytes);
        } catch (error) {
          // A claim that came to nothing must not lock others out.
          if (isNew) await this.claims.drop(name);
          throw error;
        }
        return { path };
      },
      signal,
    );
  };

  readonly releaseVolumes = async (uid: VmUid, signal: AbortSignal): Promise<void> => {
    for (const name of await this.claims.heldBy(uid)) {
      await this.byName.run(name, async () => await this.claims.drop(name), signal);
    }
  };

  private async sizeVolume(name: string, path: string, targetBytes: number): Promise<void> {
    const currentBytes = await diskSize(path);
    if (currentBytes === undefined) {
      const partial = `${path}.partial`;
      await rm(partial, { force: true });
      try {
        await createSparse(partial, targetBytes);
        await placeFile(partial, path);
      } finally {
        await rm(partial, { force: true });
      }
      return;
    }
    refuseShrink(`volume ${name}`, `the volume's size`, currentBytes, targetBytes);
    if (targetBytes > currentBytes) await setSize(path, targetBytes);
  }
}
