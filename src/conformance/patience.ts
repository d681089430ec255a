/**
 * Waiting in a suite: for a level, and never longer than a bound, in real time, because what is judged runs in real time.
 */

/** How long a promise of a contract may take before a case calls it broken. */
export const PATIENCE_MS = 5000;

/** The value, or a rejection that says what did not come. */
export async function within<T>(work: Promise<T>, what: string, limitMs = PATIENCE_MS): Promise<T> {
  const limit = AbortSignal.timeout(limitMs);
  return await new Promise<T>((resolve, reject) => {
    const late = (): void => {
      reject(new Error(`not within ${limitMs} ms: ${what}`));
    };
    limit.addEventListener('abort', late, { once: true });
    work.then(resolve, reject).finally(() => {
      limit.removeEventListener('abort', late);
    });
  });
}

/** Asks again and again, letting `pass` pass in between, until the level holds. */
export async function eventually(
  level: () => boolean | Promise<boolean>,
  pass: () => Promise<void>,
  what: () => string,
  limitMs = PATIENCE_MS,
): Promise<void> {
  const limit = AbortSignal.timeout(limitMs);
  while (!(await level())) {
    if (limit.aborted) throw new Error(`not within ${limitMs} ms: ${what()}`);
    await pass();
  }
}

/** Lets real time pass. */
export async function pause(ms: number): Promise<void> {
  const over = AbortSignal.timeout(ms);
  await new Promise<void>((resolve) => {
    over.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
