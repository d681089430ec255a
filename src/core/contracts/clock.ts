/**
 * Time, injected: below the composition root nobody reads the ambient clock.
 *
 * Call order: none. Every member may be called at any time, by anybody, at once.
 */
export interface Clock {
  /** Wall time in milliseconds since 1970. It jumps: use it to show and to stamp, never to measure. */
  readonly now: () => number;
  /** Milliseconds that never go back and do not count a suspended host. Comparable within one process only. */
  readonly monotonicMs: () => number;
  /** Resolves after `ms`; rejects with the signal's reason as soon as the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}
