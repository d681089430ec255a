/**
 * One piece of work for all who want the same thing.
 *
 *   none ──first waiter──► running ──ends──► none
 *                             └──last waiter leaves──► aborting ──ends──► none
 *
 * Waiters are counted: one who leaves gets its own abort and nobody else notices; when the last leaves the work is
 * aborted. Who comes while it is aborting waits for its end and starts afresh: two works on one key never overlap. Nothing
 * is kept of a result or an error.
 */
export type Work<T, P> = (signal: AbortSignal, report: (progress: P) => void) => Promise<T>;

interface Entry<T, P> {
  readonly abort: AbortController;
  readonly listeners: Set<(progress: P) => void>;
  readonly result: Promise<T>;
  waiters: number;
  /** What a waiter who comes late is told at once. */
  latest: P | undefined;
}

export class SharedWork<T, P> {
  private readonly entries = new Map<string, Entry<T, P>>();

  /** Joins the work under this key, or starts it. `onProgress` must not throw. */
  async run(key: string, work: Work<T, P>, onProgress: (progress: P) => void, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    let entry = this.entries.get(key);
    while (entry?.abort.signal.aborted === true) {
      await leaveOn(signal, entry.result.then(ignore, ignore));
      entry = this.entries.get(key);
    }
    const joined = entry ?? this.start(key, work);
    if (joined.latest !== undefined) onProgress(joined.latest);
    // A listener of its own for each waiter: the same function handed in twice is two waiters.
    const listen = (progress: P): void => onProgress(progress);
    joined.listeners.add(listen);
    joined.waiters++;
    try {
      return await leaveOn(signal, joined.result);
    } finally {
      joined.listeners.delete(listen);
      joined.waiters--;
      if (joined.waiters === 0) joined.abort.abort(new Error('nobody waits for it any more'));
    }
  }

  /** Keys of work that has not ended. */
  get running(): ReadonlySet<string> {
    return new Set(this.entries.keys());
  }

  private start(key: string, work: Work<T, P>): Entry<T, P> {
    const abort = new AbortController();
    const listeners = new Set<(progress: P) => void>();
    const report = (progress: P): void => {
      entry.latest = progress;
      for (const listener of listeners) listener(progress);
    };
    // The work begins in a later turn, so that `entry` stands before the first report.
    const result = Promise.resolve()
      .then(() => work(abort.signal, report))
      .finally(() => this.entries.delete(key));
    // Whoever waits sees the rejection; with nobody left it is nobody's.
    result.catch(ignore);
    const entry: Entry<T, P> = { abort, listeners, result, waiters: 0, latest: undefined };
    this.entries.set(key, entry);
    return entry;
  }
}

/** The promise's outcome, or the signal's reason as soon as it is aborted. */
async function leaveOn<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let leave = ignore;
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_resolve, reject) => {
        leave = () => {
          reject(signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason }));
        };
        signal.addEventListener('abort', leave, { once: true });
      }),
    ]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

const ignore = (): void => undefined;
