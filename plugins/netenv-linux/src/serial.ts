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

interface Asked<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Work that is done for several at once: what is asked for while the serial is busy is handed over together when its turn
 * comes, so many at most. Each is answered by what came of its own.
 */
export class Gathered<T, R> {
  private waiting: Asked<T, R>[] = [];

  constructor(
    private readonly serial: Serial,
    private readonly most: number,
    private readonly work: (items: readonly T[]) => Promise<readonly PromiseSettledResult<R>[]>,
  ) {}

  run(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (this.waiting.length === 1) this.takeTurn();
    });
  }

  private takeTurn(): void {
    const turn = async (): Promise<void> => {
      const taken = this.waiting.splice(0, this.most);
      // Behind whoever else waits for the serial by now.
      if (this.waiting.length > 0) this.takeTurn();
      try {
        const results = await this.work(taken.map(({ item }) => item));
        for (const [at, { resolve, reject }] of taken.entries()) {
          const result = results[at];
          if (result?.status === 'fulfilled') resolve(result.value);
          else reject(result?.reason);
        }
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    };
    // It never rejects: whoever asked is told.
    this.serial.run(turn).catch(() => undefined);
  }
}
