/**
 * How long to wait before trying again.
 */

/** Doubling from `firstMs` to `maxMs`: the wait after the `count`-th failure (1, 2, …). */
export function doubling(count: number, firstMs: number, maxMs: number): number {
  if (count <= 0) return 0;
  return Math.min(maxMs, firstMs * 2 ** Math.min(count - 1, 30));
}

/** Full jitter: anywhere between 0 and the wait, so that a fleet does not come back in step. */
export const fullJitter = (waitMs: number, fraction: number): number => Math.floor(waitMs * fraction);
