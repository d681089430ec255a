import type { Clock } from '@eitri/core/contracts';

/** Sleeps, and wakes early without an error when the signal is aborted: for loops that look at the signal themselves. */
export async function quietSleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Whether the work ended within the time; it goes on either way. Rejects as the work does. */
export async function endsWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController();
  try {
    return await Promise.race([work.then(() => true), quietSleep(clock, ms, timer.signal).then(() => false)]);
  } finally {
    timer.abort();
  }
}
