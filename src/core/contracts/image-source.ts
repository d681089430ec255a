/**
 * Images: fetched once, checked, turned into raw, kept until nobody needs them.
 */
import type { ImageDigest, ImageRef } from './vm-spec.js';

export interface PreparedImage {
  /** A raw image, read-only. It stays while somebody named in `inUse` needs it. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Digest of the source's bytes. */
  readonly digest: ImageDigest;
}

export type ImageProgress =
  | { readonly step: 'download'; readonly doneBytes: number; readonly totalBytes?: number }
  | { readonly step: 'convert'; readonly doneBytes: number; readonly totalBytes?: number };

export interface ImageSource {
  /**
   * Makes the image ready. One download serves all waiters; a cancelled waiter does not cancel it for the others. Errors
   * carry a reason code: `ImageNotFound`, `ImageDigestMismatch`, `ImageUnsupported` are permanent; the network's are not.
   * `progress` is called at most some times a second.
   */
  readonly ensure: (
    ref: ImageRef,
    progress: (progress: ImageProgress) => void,
    signal: AbortSignal,
  ) => Promise<PreparedImage>;
  /** Removes temporary files of an agent that died. Called once, before the first `ensure`. */
  readonly sweep: (signal: AbortSignal) => Promise<void>;
  /** Evicts least recently used images beyond the budget, never one of these or one in flight. */
  readonly evict: (inUse: readonly ImageDigest[], signal: AbortSignal) => Promise<void>;
}
