/**
 * Bounds a wait by the injected clock. Owns no timer: the sleep ends with the work that it bounds.
 */
import type { Clock } from '@eitri/core/contracts';

/** A signal that nobody aborts: for work that must not be skipped because its caller has lost interest. */
export const unhurried = (): AbortSignal => new AbortController().signal;

/** Runs `work` with a signal that is aborted, with `late` as its reason, when the time is over or the caller's is. */
export async function withDeadline<T>(
  clock: Clock,
  limitMs: number,
  late: Error,
  signal: AbortSignal,
  work: (bounded: AbortSignal) => Promise<T>,
): Promise<T> {
  // One controller and a listener that is taken off again: signals joined by AbortSignal.any stay with a caller's signal
  // for as long as that lives, and an agent's lives for months.
  const over = new AbortController();
  const done = new AbortController();
  const leave = (): void => {
    over.abort(signal.reason);
  };
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  const timer = clock.sleep(limitMs, done.signal).then(
    () => {
      over.abort(late);
    },
    () => undefined,
  );
  try {
    return await work(over.signal);
  } finally {
    signal.removeEventListener('abort', leave);
    done.abort();
    await timer;
  }
}

/** Sleeps, and answers whether the whole time passed: an aborted signal ends the sleep without an error. */
export async function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(ms, signal);
    return true;
  } catch {
    return false;
  }
}
