/**
 * What the cases of every suite are written with: checks that fail with a sentence, and knobs that a factory may lack.
 */
import { errorLine, stableJson } from '@eitri/core/kit';
import type { SuiteCase } from './suite.js';

/** A case, and the knobs that it turns. */
export interface FaultCase<C, Fault extends string, Name extends string = string> extends SuiteCase<C> {
  readonly name: Name;
  readonly needs: readonly Fault[];
}

/** A maker of one suite's cases, which keeps each name as a type: `without` takes no other. */
export const caseMaker =
  <C, Fault extends string>() =>
  <Name extends string>(
    name: Name,
    promise: string,
    needs: readonly Fault[],
    run: (context: C) => Promise<void>,
  ): FaultCase<C, Fault, Name> => ({ name, promise, needs, run });

/** How often an idempotent call is repeated. */
export const TIMES = 10;

/** A signal that nobody aborts. */
export const calm = (): AbortSignal => new AbortController().signal;
/** A signal that was aborted before anybody looked. */
export const aborted = (): AbortSignal => AbortSignal.abort(new Error('aborted before the call'));

export function check(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new Error(sentence);
}

export function same(seen: unknown, wanted: unknown, what: string): void {
  const [a, b] = [stableJson(seen), stableJson(wanted)];
  check(a === b, `${what}: ${a} instead of ${b}`);
}

/** What a promise rejected with; a promise that resolves is the failure. */
export async function rejection(promise: Promise<unknown>, what: string): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(
    `${what} resolved${value === undefined ? '' : ` with ${stableJson(value)}`}, and should have rejected`,
  );
}

/** The factory's knob; its absence is the case's failure, in words that say what to do. */
export function knob<Faults extends object, Name extends keyof Faults & string>(
  { faults }: { readonly faults: Faults },
  name: Name,
): NonNullable<Faults[Name]> {
  const fault = faults[name];
  if (fault === undefined || fault === null) {
    throw new Error(
      `this case needs the fault "${name}", which the factory does not give: give it, or leave the case out by name in \`without\`, with a reason`,
    );
  }
  return fault;
}

/** Whether an error tells of a cause, in its own message or down its chain. */
export const tells = (error: unknown, cause: string): boolean => errorLine(error).includes(cause);
