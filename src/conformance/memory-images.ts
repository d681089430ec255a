/**
 * Images in the files of a `FakeHost`. Every reference leads to an image, until `missing` names it.
 */
import { createHash } from 'node:crypto';
import type { ImageDigest, ImageProgress, ImageRef, ImageSource, PreparedImage } from '@eitri/core/contracts';
import { GIB, permanent } from '@eitri/core/kit';
import type { CallLog } from './call-log.js';
import type { FakeHost } from './fake-host.js';

/** What a `MemoryImages` is joined to. */
export interface MemoryImagesOptions {
  readonly host: FakeHost;
  readonly calls?: CallLog;
}

/** An `ImageSource` that has every image at once, unless told otherwise. */
export class MemoryImages implements ImageSource {
  readonly calls: CallLog;
  /** Catalog names or URLs that lead nowhere. */
  readonly missing = new Set<string>();
  /** How long a download takes. */
  downloadMs = 0;
  sizeBytes = GIB;
  /** How often each source was downloaded. */
  readonly downloads = new Map<string, number>();
  /** What each call of `evict` was told to keep. */
  readonly kept: (readonly ImageDigest[])[] = [];

  constructor(private readonly options: MemoryImagesOptions) {
    this.calls = options.calls ?? options.host.calls;
  }

  readonly ensure = (
    ref: ImageRef,
    progress: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ): Promise<PreparedImage> =>
    this.calls.around('imageSource.ensure', undefined, async () => {
      signal.throwIfAborted();
      const source = ref.kind === 'catalog' ? ref.name : ref.url;
      if (this.missing.has(source)) throw permanent(`image ${source} is not there`, { code: 'ImageNotFound' });
      const digest = imageDigest(ref);
      const path = `/state/images/${digest.hex}.raw`;
      if (!this.options.host.files.has(path)) {
        progress({ step: 'download', doneBytes: 0, totalBytes: this.sizeBytes });
        if (this.downloadMs > 0) await this.options.host.clock.sleep(this.downloadMs, signal);
        progress({ step: 'download', doneBytes: this.sizeBytes, totalBytes: this.sizeBytes });
        this.downloads.set(source, (this.downloads.get(source) ?? 0) + 1);
        this.options.host.writeFile(path, `image ${source}`, this.sizeBytes);
      }
      return { path, sizeBytes: this.sizeBytes, digest };
    });

  readonly sweep = (signal: AbortSignal): Promise<void> =>
    this.calls.around('imageSource.sweep', undefined, () => {
      signal.throwIfAborted();
    });

  readonly evict = (inUse: readonly ImageDigest[], signal: AbortSignal): Promise<void> =>
    this.calls.around('imageSource.evict', undefined, () => {
      signal.throwIfAborted();
      this.kept.push(inUse);
    });
}

/** The digest that an image of this reference has here. */
export function imageDigest(ref: ImageRef): ImageDigest {
  if (ref.kind === 'url' && ref.digest !== undefined) return ref.digest;
  const source = ref.kind === 'catalog' ? ref.name : ref.url;
  return { algorithm: 'sha256', hex: createHash('sha256').update(source).digest('hex') };
}
