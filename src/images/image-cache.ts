/**
 * Images of this host: fetched once for all who wait, checked, turned into raw, kept until nobody needs them.
 *
 *   reference ──► cached? ──► receive (resumable, hashed) ──► digest ──► header ──► [qcow2: check, convert] ──► placed
 *
 * Owns the image folder. An address without a digest is pinned to what it gave when it was fetched, and asked again, by
 * its validators, at every later `ensure`; when the server is away, what is there is used. An image with a digest is never
 * asked for twice. Lock order: work under one key (`SharedWork`), then one digest (`placing`); never the other way.
 */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { CLOCK, HOST_FACTS, LOGGER, RUNNER } from '@eitri/core/contracts';
import type {
  Clock,
  HostFacts,
  ImageDigest,
  ImageProgress,
  ImageRef,
  ImageSource,
  Logger,
  PreparedImage,
  Runner,
} from '@eitri/core/contracts';
import {
  codeOf,
  errorLine,
  GIB,
  isPermanent,
  KeyedMutex,
  permanent,
  retryable,
  stableJson,
  systemCode,
} from '@eitri/core/kit';
import { inject, injectable } from 'tsyringe';
import type { Dispatcher } from 'undici';
import { ensureFolder, PASSAGE_FOLDER_MODE, syncFolder } from '../host/atomic-file.js';
import { placeFile } from '../host/place-file.js';
import { FreeSpace, freeBytesOf } from './free-space.js';
import { download, type Validators } from './http-download.js';
import { HEAD_BYTES, inspectImage } from './image-format.js';
import { CONVERT_SUFFIX, digestName, ImageIndex, type ImageSighting, type StoredImage } from './image-index.js';
import { resolveImage, type WantedImage } from './image-origin.js';
import { copyLocalImage, openLocalImage, type LocalImage } from './local-image.js';
import type { PartialFile } from './partial-file.js';
import { throttled } from './progress.js';
import { DEFAULT_QEMU_IMG_USER, IMAGE_MODE, QemuImg, type QemuImgUser } from './qemu-img.js';
import { SharedWork } from './shared-work.js';
import { Transfers } from './transfers.js';

export interface ImageCacheOptions {
  /** `<state>/images`. */
  readonly folder: string;
  /** `--image-dir`: the catalog. */
  readonly imageDir?: string;
  /** The agent's own user: its files may be images. */
  readonly uid: number;
  /** `--image-cache-max-gb` in bytes; 0 = never evict. */
  readonly maxBytes: number;
  /** Whether `file:` addresses are taken: only where manifests are local. Default true. */
  readonly fileUrls?: boolean;
  /** Never written into. Default 1 GiB. */
  readonly reserveBytes?: number;
  /** For HTTP; undici's `EnvHttpProxyAgent` where proxies are wanted. */
  readonly dispatcher?: Dispatcher;
  /** A try that takes longer is given up. Default 10 minutes. */
  readonly fetchLimitMs?: number;
  /** Who runs qemu-img where the agent is root. Default: nobody. */
  readonly qemuImgUser?: QemuImgUser;
  /** Free bytes below a folder; default: the file system's word. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

interface Known {
  readonly image: StoredImage;
  readonly validators: Validators;
}

const FETCH_LIMIT_MS = 10 * 60_000;
const RESERVE_BYTES = GIB;
/**
 * How long an image that was handed out is not evicted although nobody names it: between `ensure` and the record that
 * names it lies a write, and behind it a clone. As long as a VM's pass may take.
 */
const LEASE_MS = 15 * 60_000;

@injectable()
export class ImageCache implements ImageSource {
  private readonly index: ImageIndex;
  private readonly qemuImg: QemuImg;
  private readonly space: FreeSpace;
  private readonly work = new SharedWork<PreparedImage, ImageProgress>();
  private readonly placing = new KeyedMutex();
  private readonly transfers: Transfers;
  /** When each image was last handed out. */
  private readonly leases = new Map<string, number>();

  constructor(
    @inject(RUNNER) runner: Runner,
    @inject(HOST_FACTS) facts: HostFacts,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    private readonly options: ImageCacheOptions,
  ) {
    this.index = new ImageIndex(options.folder);
    this.transfers = new Transfers(options.folder);
    this.qemuImg = new QemuImg(runner, facts, options.qemuImgUser ?? DEFAULT_QEMU_IMG_USER);
    const { reserveBytes = RESERVE_BYTES, freeBytes = freeBytesOf } = options;
    this.space = new FreeSpace(options.folder, reserveBytes, freeBytes);
  }

  readonly ensure = async (
    ref: ImageRef,
    progress: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<PreparedImage> => {
    const key = stableJson(ref);
    return await this.work.run(
      key,
      async (own, report) => await this.prepare(ref, key, report, own),
      throttled(this.clock, progress),
      signal,
    );
  };

  readonly sweep = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    const swept = await this.index.sweep();
    if (swept.length > 0) this.log.info('images.swept', { files: swept });
  };

  readonly evict = async (inUse: readonly ImageDigest[], signal: AbortSignal): Promise<void> => {
    const { maxBytes } = this.options;
    if (maxBytes <= 0) return;
    const named = new Set(inUse.map(digestName));
    const images = await this.index.list();
    let total = images.reduce((sum, image) => sum + image.allocatedBytes, 0);
    // What broke off and nobody may ever take up again goes first.
    for (const { key, doneBytes } of this.transfers.idle(this.work.running)) {
      if (total + doneBytes > maxBytes) await this.transfers.forget(key);
      else total += doneBytes;
    }
    for (const image of [...images].sort((a, b) => a.note.lastUsedAt - b.note.lastUsedAt)) {
      signal.throwIfAborted();
      const name = digestName(image.note.digest);
      if (total <= maxBytes) return;
      if (named.has(name)) continue;
      const gone = await this.placing.run(name, async () => {
        // Asked under the lock: an `ensure` may have handed it out a moment ago.
        if (this.leased(name)) return false;
        await this.index.remove(image.note.digest);
        return true;
      });
      if (!gone) continue;
      total -= image.allocatedBytes;
      this.log.info('images.evicted', { digest: name, freedBytes: image.allocatedBytes });
    }
  };

  private async prepare(
    ref: ImageRef,
    key: string,
    report: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<PreparedImage> {
    const wanted = await resolveImage(ref, this.options);
    const { origin, digest } = wanted;
    try {
      if (digest !== undefined) {
        const hit = await this.take(digest, wanted, undefined);
        if (hit !== undefined) return hit;
      }
      await ensureFolder(this.options.folder, PASSAGE_FOLDER_MODE);
      await this.transfers.bound(this.work.running);
      const known = digest === undefined ? await this.index.findBySource(origin.url) : undefined;
      return origin.kind === 'http'
        ? await this.fromHttp(wanted, origin.url, key, known, report, signal)
        : await this.fromFile(wanted, origin.path, key, known, report, signal);
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      if (systemCode(cause) === 'ENOSPC') {
        const why = `the disk under ${this.options.folder} is full: free some space, or lower --image-cache-max-gb`;
        throw retryable(`make the image ${origin.name} ready: ${why}`, { cause });
      }
      // Many causes name the image themselves, and need no second sentence round theirs.
      if (errorLine(cause).includes(origin.name)) throw cause;
      throw retryable(`make the image ${origin.name} ready`, { cause });
    }
  }

  private async fromHttp(
    wanted: WantedImage,
    url: string,
    key: string,
    known: Known | undefined,
    report: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<PreparedImage> {
    const transfer = this.transfers.of(key, wanted.digest?.algorithm ?? 'sha256');
    const job = {
      url,
      transfer,
      known: known === undefined || noValidators(known.validators) ? undefined : known.validators,
      onProgress: (doneBytes: number, totalBytes: number | undefined) =>
        report(downloadProgress(doneBytes, totalBytes)),
      requireSpace: async (moreBytes: number) => await this.space.require(wanted.origin.name, moreBytes),
    };
    let framed: boolean;
    try {
      await transfer.partial.open();
      const result = await this.within(signal, async (limited) => await download(job, this.transport(), limited));
      if (result.kind === 'unchanged') {
        const same = known && (await this.take(known.image.note.digest, wanted, known.validators));
        if (same === undefined) throw retryable('the cached image went away while its server was asked about it');
        await this.transfers.forget(key);
        return same;
      }
      framed = result.framed;
      await transfer.partial.finish();
      await transfer.partial.close();
    } catch (error) {
      await transfer.partial.close();
      if (transfer.partial.doneBytes > 0 && !isPermanent(error)) throw error;
      await this.transfers.forget(key);
      // Only where nothing came: a server that began to send has another file, and the old one would be a silent mistake.
      if (known === undefined || isPermanent(error) || signal.aborted) throw error;
      const last = await this.take(known.image.note.digest, wanted, known.validators);
      if (last === undefined) throw error;
      this.log.warn('images.revalidate.failed', {
        image: wanted.origin.name,
        using: digestName(last.digest),
        err: error,
      });
      return last;
    }
    return await this.accept(wanted, transfer.partial, transfer.validators, framed, key, report, signal);
  }

  private async fromFile(
    wanted: WantedImage,
    path: string,
    key: string,
    known: Known | undefined,
    report: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<PreparedImage> {
    const image = await openLocalImage(path, { imageDir: this.options.imageDir, uid: this.options.uid });
    try {
      const validators = { etag: image.identity };
      if (known?.validators.etag === image.identity) {
        const same = await this.take(known.image.note.digest, wanted, validators);
        if (same !== undefined) return same;
      }
      const { partial } = this.transfers.of(key, wanted.digest?.algorithm ?? 'sha256');
      await this.space.require(wanted.origin.name, image.sizeBytes);
      await this.within(signal, async (limited) => await this.copy(image, partial, report, limited));
      return await this.accept(wanted, partial, validators, true, key, report, signal);
    } finally {
      await image.file.close();
      await this.transfers.forget(key);
    }
  }

  private async copy(
    image: LocalImage,
    partial: PartialFile,
    report: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<void> {
    await partial.open();
    try {
      await copyLocalImage(image, partial, (done) => report(downloadProgress(done, image.sizeBytes)), signal);
      await partial.finish();
    } finally {
      await partial.close();
    }
  }

  /** From received bytes to an image in its place, or to nothing: a file that was refused is not kept. */
  private async accept(
    wanted: WantedImage,
    partial: PartialFile,
    validators: Validators,
    framed: boolean,
    key: string,
    report: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<PreparedImage> {
    const { origin, digest: declared } = wanted;
    const what = `the image ${origin.name}`;
    const digest = partial.digest;
    try {
      if (declared !== undefined && declared.hex !== digest.hex) {
        throw permanent(
          `${what} has the ${declared.algorithm} ${digest.hex}, and ${declared.hex} was declared: either the file changed, or the manifest is wrong`,
          { code: 'ImageDigestMismatch' },
        );
      }
      const inspected = inspectImage(what, await headOf(partial.path), wanted.format);
      if (!framed && declared === undefined && inspected.format === 'raw') {
        // qcow2 is judged by its check; a raw file that was cut looks like any other.
        throw permanent(`${what} came without a length, so nobody can tell whether it is whole: declare its sha256`, {
          code: 'ImageUnsupported',
        });
      }
      return await this.placing.run(
        digestName(digest),
        async () => {
          const sizeBytes = inspected.format === 'raw' ? partial.doneBytes : inspected.header.virtualSizeBytes;
          // Another address, or another reference to this one, may have brought the same bytes meanwhile.
          if ((await this.index.read(digest)) === undefined) {
            if (inspected.format === 'raw') await this.placeRaw(partial, digest);
            else await this.placeQcow2(what, partial, digest, sizeBytes, declared !== undefined, report, signal);
            const note = {
              version: 1 as const,
              digest,
              format: inspected.format,
              sizeBytes,
              sources: [],
              lastUsedAt: 0,
            };
            await this.index.note(note, undefined, this.clock.now());
            this.log.info('images.ready', { image: origin.name, digest: digestName(digest), sizeBytes });
          }
          const ready = await this.hand(digest, wanted, validators);
          if (ready === undefined) throw retryable(`${what} is not there after it was placed`);
          return ready;
        },
        signal,
      );
    } finally {
      await this.transfers.forget(key);
    }
  }

  private async placeRaw(partial: PartialFile, digest: ImageDigest): Promise<void> {
    const file = await open(partial.path, 'r');
    try {
      await file.chmod(IMAGE_MODE);
    } finally {
      await file.close();
    }
    await placeFile(partial.path, this.index.rawPath(digest));
  }

  private async placeQcow2(
    what: string,
    partial: PartialFile,
    digest: ImageDigest,
    sizeBytes: number,
    isDeclared: boolean,
    report: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<void> {
    report({ step: 'convert', doneBytes: 0, totalBytes: sizeBytes });
    const folder = join(this.options.folder, digestName(digest) + CONVERT_SUFFIX);
    const target = this.index.rawPath(digest);
    try {
      // How much it will take is not known before; what it takes compressed is the least.
      await this.space.require(what, partial.doneBytes);
      await this.qemuImg.toRaw({ what, source: partial.path, target, folder, sizeBytes }, signal);
    } catch (cause) {
      // These are the bytes that were declared: they will be as damaged the next time.
      if (isDeclared && !signal.aborted && codeOf(cause) === 'ImageUnsupported') {
        throw permanent(`${what} has the declared digest and is damaged all the same`, {
          cause,
          code: 'ImageUnsupported',
        });
      }
      throw cause;
    }
    await syncFolder(this.options.folder);
    report({ step: 'convert', doneBytes: sizeBytes, totalBytes: sizeBytes });
  }

  /** Hands out what is there of a digest, under its lock. */
  private async take(
    digest: ImageDigest,
    wanted: WantedImage,
    validators: Validators | undefined,
  ): Promise<PreparedImage | undefined> {
    return await this.placing.run(digestName(digest), async () => await this.hand(digest, wanted, validators));
  }

  /** The caller holds the digest's lock. */
  private async hand(
    digest: ImageDigest,
    wanted: WantedImage,
    validators: Validators | undefined,
  ): Promise<PreparedImage | undefined> {
    const image = await this.index.read(digest);
    if (image === undefined) return undefined;
    const { note, path } = image;
    if (wanted.format !== undefined && wanted.format !== note.format) {
      throw permanent(`the image ${wanted.origin.name} was declared as ${wanted.format} and is ${note.format}`, {
        code: 'ImageUnsupported',
      });
    }
    this.leases.set(digestName(digest), this.clock.monotonicMs());
    const now = this.clock.now();
    const sighting: ImageSighting | undefined =
      validators === undefined ? undefined : { url: wanted.origin.url, ...validators, at: now };
    await this.index.note(note, sighting, now);
    return { path, sizeBytes: note.sizeBytes, digest };
  }

  private leased(name: string): boolean {
    const at = this.leases.get(name);
    if (at === undefined) return false;
    if (this.clock.monotonicMs() - at < LEASE_MS) return true;
    this.leases.delete(name);
    return false;
  }

  /** Bounds one try. What has come stays, so the next try goes on from there. */
  private async within<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const limitMs = this.options.fetchLimitMs ?? FETCH_LIMIT_MS;
    const over = new AbortController();
    const done = new AbortController();
    const timer = this.clock.sleep(limitMs, done.signal).then(
      () =>
        over.abort(retryable(`given up after ${Math.round(limitMs / 1000)} s: it goes on from there at the next try`)),
      () => undefined,
    );
    try {
      return await work(AbortSignal.any([signal, over.signal]));
    } finally {
      done.abort(new Error('done'));
      await timer;
    }
  }

  private transport(): { readonly clock: Clock; readonly dispatcher?: Dispatcher } {
    const { dispatcher } = this.options;
    return dispatcher === undefined ? { clock: this.clock } : { clock: this.clock, dispatcher };
  }
}

function downloadProgress(doneBytes: number, totalBytes: number | undefined): ImageProgress {
  return totalBytes === undefined ? { step: 'download', doneBytes } : { step: 'download', doneBytes, totalBytes };
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    let length = 0;
    while (length < head.length) {
      const { bytesRead } = await file.read(head, length, head.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return head.subarray(0, length);
  } finally {
    await file.close();
  }
}

const noValidators = ({ etag, lastModified }: Validators): boolean => etag === undefined && lastModified === undefined;
