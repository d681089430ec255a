/**
 * Waits for a level, never for a time: asks again and again until it holds, and says what it saw last when it does not.
 */
export async function until<T>(
  level: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly everyMs?: number; readonly what?: string } = {},
): Promise<NonNullable<T>> {
  const { timeoutMs = 60_000, everyMs = 20, what = level.toString() } = options;
  const end = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await level();
      if (value !== undefined && value !== null && value !== false) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) {
      throw new Error(`not reached within ${timeoutMs.toString()} ms: ${what}; last: ${String(last)}`, { cause: last });
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
