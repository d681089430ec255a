/**
 * Bounds one pass: aborted when it takes too long, and told of when it ignores that. It is waited for all the same: who
 * gave up on it could start the same work beside it.
 */
import type { Clock } from '../contracts/index.js';
import { linkAbort } from '../kit/index.js';

export interface WatchOptions {
  readonly clock: Clock;
  /** 0: no bound. */
  readonly limitMs: number;
  readonly stuckAfterMs: number;
  /** What a pass that took too long is aborted with. */
  readonly overdue: () => Error;
  readonly onStuck: () => void;
  /** The agent's end: aborts the pass too. */
  readonly signal: AbortSignal;
}

export async function watched<T>(options: WatchOptions, work: (pass: AbortController) => Promise<T>): Promise<T> {
  const pass = new AbortController();
  const over = new AbortController();
  const unlinkPass = linkAbort(options.signal, pass);
  const unlinkOver = linkAbort(options.signal, over);
  const watching = watch(options, pass, over.signal);
  try {
    return await work(pass);
  } finally {
    unlinkPass();
    unlinkOver();
    over.abort();
    await watching;
  }
}

async function watch(options: WatchOptions, pass: AbortController, over: AbortSignal): Promise<void> {
  if (options.limitMs === 0) return;
  try {
    await options.clock.sleep(options.limitMs, over);
    pass.abort(options.overdue());
    await options.clock.sleep(options.stuckAfterMs, over);
    options.onStuck();
  } catch {
    // The pass is over.
  }
}
