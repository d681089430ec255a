import type { ImageDigest, ImageRef } from './vm-spec.js';

/** An image that a root disk can be cloned from. */
export interface PreparedImage {
  /** A raw image, read-only. It stays while somebody named in `inUse` needs it. */
  readonly path: string;
  /** Size of the raw image, which is a disk's least size. */
  readonly sizeBytes: number;
  /** Digest of the source's bytes. */
  readonly digest: ImageDigest;
}

/** How far an image is. `totalBytes` is absent where nobody said it; `doneBytes` never goes back within one step. */
export type ImageProgress =
  | { readonly step: 'download'; readonly doneBytes: number; readonly totalBytes?: number }
  | { readonly step: 'convert'; readonly doneBytes: number; readonly totalBytes?: number };

/**
 * Images: fetched once, checked, turned into raw, kept until nobody needs them.
 *
 * Call order: `sweep` once; then `ensure` for each VM that is created; `evict` when an image came or a VM went.
 * Concurrency: `ensure` and `evict` at once, any number of times: an image that was handed out a moment ago is not
 * evicted, although no record names it yet.
 */
export interface ImageSource {
  /**
   * Makes the image ready. Idempotent: one that is there is only looked at. Who asks for an image that is on its way
   * waits for the same download, and who is aborted leaves it to the others; the last one's abort ends it.
   *
   * Resolved means that the whole content was checked, and that `path` may be cloned from for the next 15 minutes even
   * if nobody names it. Errors carry a reason code: `ImageNotFound`, `ImageDigestMismatch`, `ImageUnsupported` are
   * permanent; the network's and a full disk's are not. `progress` is called at most some times a second, never after
   * the answer.
   */
  readonly ensure: (
    ref: ImageRef,
    progress: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ) => Promise<PreparedImage>;
  /** Removes temporary files of an agent that died. Called once, before the first `ensure`. Idempotent. */
  readonly sweep: (signal: AbortSignal) => Promise<void>;
  /**
   * Removes least recently used images until the rest fits the cache's limit: never one named in `inUse`, one in
   * flight, or one handed out lately, also when that leaves too much. Idempotent. Without a limit nothing is removed.
   * Rejects, retryable, when a file would not go; what went before it is gone.
   */
  readonly evict: (inUse: readonly ImageDigest[], signal: AbortSignal) => Promise<void>;
}
