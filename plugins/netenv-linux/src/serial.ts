/**
 * Work that must not overlap, and work that one run does for many.
 */

/** A signal that nobody aborts: for what must not be left half done. */
export const unhurried = (): AbortSignal => new AbortController().signal;

/** One piece of work at a time, in the order in which it was asked for. */
export class Serial {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.last.then(work, work);
    this.last = mine.catch(() => undefined);
    return mine;
  }
}

/**
 * Work whose one run serves everybody who asked before it began: ten guests that come at once cost one reload, and each
 * is answered by a run that began after it had asked.
 */
export class Shared {
  private readonly serial = new Serial();
  private waiting: Promise<void> | undefined;

  constructor(private readonly work: () => Promise<void>) {}

  run(): Promise<void> {
    this.waiting ??= this.serial.run(async () => {
      this.waiting = undefined;
      await this.work();
    });
    return this.waiting;
  }
}
