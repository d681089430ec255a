/**
 * Locks. `KeyedMutex` makes the work on one key serial; `Semaphore` bounds how much work runs at once. Waiters are served
 * in their order, and one whose signal is aborted leaves the queue.
 */
interface Waiter {
  readonly grant: () => void;
}

/** At most `permits` holders at once; 0 means no bound. */
export class Semaphore {
  private held = 0;
  private readonly queue: Waiter[] = [];

  constructor(private readonly permits: number) {}

  /** Resolves with the release, which works once. Rejects with the signal's reason while it still waits. */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.permits > 0 && this.held >= this.permits) await this.wait(signal);
    else this.held++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const next = this.queue.shift();
      if (next === undefined) this.held--;
      else next.grant();
    };
  }

  /** Whether somebody who comes now would wait. */
  get full(): boolean {
    return this.permits > 0 && this.held >= this.permits;
  }

  private async wait(signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          signal?.removeEventListener('abort', leave);
          resolve();
        },
      };
      const leave = (): void => {
        const at = this.queue.indexOf(waiter);
        if (at >= 0) this.queue.splice(at, 1);
        reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
      };
      signal?.addEventListener('abort', leave, { once: true });
      this.queue.push(waiter);
    });
  }
}

/** One holder a key. */
export class KeyedMutex {
  private readonly locks = new Map<string, { readonly lock: Semaphore; users: number }>();

  /** Runs `work` while no other work on the same key runs. */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const entry = this.locks.get(key) ?? { lock: new Semaphore(1), users: 0 };
    this.locks.set(key, entry);
    entry.users++;
    try {
      const release = await entry.lock.acquire(signal);
      try {
        return await work();
      } finally {
        release();
      }
    } finally {
      entry.users--;
      if (entry.users === 0) this.locks.delete(key);
    }
  }
}
