/**
 * How a behavioural suite becomes tests of the caller's own vitest: one test a case, each with a fresh context.
 *
 * Owns the registration, the fresh context and its disposal, and what is left out. Knows no contract: each suite brings
 * its cases. `vitest` is a peer dependency, so that the tests are collected by the runner that the caller started; to
 * import this package outside a run is harmless.
 */
import { describe, it } from 'vitest';

/** One promise of a contract, as something that can be tried. */
export interface SuiteCase<C> {
  /** Situation, then outcome. Unique within its suite. */
  readonly name: string;
  /** The contract's sentence that is tried here, in the contract's own words. */
  readonly promise: string;
  /** Rejects, with a sentence, where the promise is broken. */
  readonly run: (context: C) => Promise<void>;
}

/** How a suite is registered; all may be left out. */
export interface SuiteOptions<C> {
  /**
   * Cases that do not hold here, by name, each with the reason. They are not run; the reason is printed, and a name
   * that no case has, or an empty reason, fails.
   */
  readonly without?: Readonly<Partial<Record<string, string>>>;
  /** Called after each case, also after a failed one: ends what the context started. */
  readonly dispose?: (context: C) => Promise<void>;
  /** Limit of one case in milliseconds. Default: that of the caller's vitest. */
  readonly timeoutMs?: number;
  /** Where the reasons for what is left out are said. Default: standard output. */
  readonly say?: (line: string) => void;
}

/**
 * Registers a suite in the vitest that is collecting now: a `describe` of this name with one test a case.
 *
 * @param name - What is tried: `provisioner: qemu`.
 * @param cases - The suite, e.g. `provisionerCases`.
 * @param makeContext - Called anew for each case.
 */
export function registerSuite<C>(
  name: string,
  cases: readonly SuiteCase<C>[],
  makeContext: () => C | Promise<C>,
  options: SuiteOptions<C> = {},
): void {
  const plan = planSuite(cases, options.without);
  describe(name, () => {
    for (const one of plan.run) {
      it(one.name, { ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs }) }, async () => {
        await runCase(one, makeContext, options.dispose);
      });
    }
    if (plan.leftOut.length > 0 || plan.troubles.length > 0) {
      it('leaves cases out for stated reasons only', () => {
        if (plan.troubles.length > 0) throw new Error(plan.troubles.join('; '));
        for (const { case: left, reason } of plan.leftOut)
          say(options.say, `${name}: without "${left.name}": ${reason}`);
      });
    }
  });
}

/** Runs one case in a context of its own. What `dispose` throws does not hide what the case threw. */
export async function runCase<C>(
  one: SuiteCase<C>,
  makeContext: () => C | Promise<C>,
  dispose?: (context: C) => Promise<void>,
): Promise<void> {
  const context = await makeContext();
  let broken: Error | undefined;
  try {
    await one.run(context);
  } catch (cause) {
    // What was seen stands first: a runner's summary shows the first line only.
    const seen = cause instanceof Error ? cause.message : String(cause);
    broken = new Error(`${seen}\n  the contract says: ${one.promise}`, { cause });
  }
  try {
    await dispose?.(context);
  } catch (error) {
    if (broken === undefined) throw error;
  }
  if (broken !== undefined) throw broken;
}

/** What of a suite runs, what is left out, and what is wrong with the leaving out. */
export interface SuitePlan<C> {
  readonly run: readonly SuiteCase<C>[];
  readonly leftOut: readonly { readonly case: SuiteCase<C>; readonly reason: string }[];
  readonly troubles: readonly string[];
}

/** Splits a suite by what is left out. Pure. */
export function planSuite<C>(
  cases: readonly SuiteCase<C>[],
  without: Readonly<Partial<Record<string, string>>> = {},
): SuitePlan<C> {
  const run: SuiteCase<C>[] = [];
  const leftOut: { readonly case: SuiteCase<C>; readonly reason: string }[] = [];
  const troubles: string[] = [];
  const names = new Set<string>();
  for (const one of cases) {
    if (names.has(one.name)) troubles.push(`two cases are called "${one.name}"`);
    names.add(one.name);
    const reason = without[one.name];
    if (reason === undefined) run.push(one);
    else leftOut.push({ case: one, reason });
  }
  for (const [name, reason] of Object.entries(without)) {
    if (!names.has(name)) troubles.push(`without "${name}": no case has this name`);
    else if (reason?.trim() === '') troubles.push(`without "${name}": a reason is missing`);
  }
  return { run, leftOut, troubles };
}

function say(given: ((line: string) => void) | undefined, line: string): void {
  if (given !== undefined) given(line);
  // eslint-disable-next-line no-console -- the one place where a test run tells its reader what it did not try
  else console.info(line);
}
