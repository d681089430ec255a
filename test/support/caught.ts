/**
 * How a suite's own tests see that a case catches a broken implementation: by its check, and not by a slip.
 */
import { runCase, type SuiteCase } from '@eitri/conformance';
import { causesOf } from '@eitri/core/kit';
import { expect } from 'vitest';

/** The case fails over this context, and cites the promise that it tries. */
export async function expectCaught<C>(one: SuiteCase<C>, makeContext: () => C | Promise<C>): Promise<void> {
  const error: unknown = await runCase(one, makeContext).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Error);
  expect(String(error)).toContain(one.promise);
  expect(causesOf(error).some((e) => e instanceof TypeError || e instanceof ReferenceError)).toBe(false);
  expect(String(error)).not.toContain('needs the fault');
}
