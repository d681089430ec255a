/**
 * The behavioural suite of the `Network` and `HostNetwork` contracts: what the network of a host's guests must do,
 * whatever it is made of.
 *
 * Each case quotes the contract's sentence that it tries. The suite is shown to fail: test/conformance has a broken
 * network for each case.
 */
import { networkHostCases } from './network/cases-host.js';
import { networkVmCases } from './network/cases-vm.js';
import type { NetworkCase } from './network/checks.js';
import type { NetworkContext } from './network/context.js';
import { registerSuite, type SuiteOptions } from './suite.js';

const cases = [...networkHostCases, ...networkVmCases] as const;

/** Names of all cases: what `without` takes. */
export type NetworkCaseName = (typeof cases)[number]['name'];

/** All cases: the host's side first, as at a start. */
export const networkCases: readonly NetworkCase<NetworkCaseName>[] = cases;

/** How the suite is registered; times in milliseconds. */
export interface NetworkSuiteOptions extends Pick<SuiteOptions<NetworkContext>, 'timeoutMs' | 'say'> {
  /** Cases that can't be tried here, by name, each with the reason, which is printed. */
  readonly without?: Readonly<Partial<Record<NetworkCaseName, string>>>;
}

/**
 * Registers the suite in the vitest that is collecting now.
 *
 * @param name - What is tried, e.g. `network: netenv-linux`.
 * @param factory - Called anew for each case: a host of its own, with nothing on it.
 */
export function networkSuite(
  name: string,
  factory: () => NetworkContext | Promise<NetworkContext>,
  options: NetworkSuiteOptions = {},
): void {
  registerSuite<NetworkContext>(name, networkCases, factory, {
    ...options,
    dispose: (context) => context.dispose(),
  });
}
