/**
 * The behavioural suite of the `Provisioner` contract: what a backend must do, whatever it is made of.
 *
 * Each case quotes the contract's sentence that it tries; idempotent calls are repeated ten times. The suite is shown
 * to fail: test/conformance has a broken backend for each case.
 */
import type { ProvisionerCase } from './provisioner/checks.js';
import { endCases } from './provisioner/cases-end.js';
import { observeCases } from './provisioner/cases-observe.js';
import { restartCases } from './provisioner/cases-restart.js';
import { startCases } from './provisioner/cases-start.js';
import type { ProvisionerContext } from './provisioner/context.js';
import { registerSuite, type SuiteOptions } from './suite.js';

const cases = [...startCases, ...observeCases, ...endCases, ...restartCases] as const;

/** The name of a case, to leave it out by. */
export type ProvisionerCaseName = (typeof cases)[number]['name'];

/** All cases, in the order of a VM's life. */
export const provisionerCases: readonly ProvisionerCase<ProvisionerCaseName>[] = cases;

/** What is left out, with its reason, and how long a case may take. */
export interface ProvisionerSuiteOptions extends Pick<SuiteOptions<ProvisionerContext>, 'timeoutMs' | 'say'> {
  /** Cases that can't be tried here, by name, each with the reason, which is printed. */
  readonly without?: Readonly<Partial<Record<ProvisionerCaseName, string>>>;
}

/**
 * Registers the suite in the vitest that is collecting now.
 *
 * @param name - What is tried, e.g. `provisioner: qemu`.
 * @param factory - Called anew for each case: a host of its own, with nothing on it.
 */
export function provisionerSuite(
  name: string,
  factory: () => ProvisionerContext | Promise<ProvisionerContext>,
  options: ProvisionerSuiteOptions = {},
): void {
  registerSuite<ProvisionerContext>(name, provisionerCases, factory, {
    ...options,
    dispose: (context) => context.dispose(),
  });
}
