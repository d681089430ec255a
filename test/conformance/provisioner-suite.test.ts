/**
 * The provisioner's suite, tried itself: the good fake passes all of it, and for each case there is a broken backend that
 * this case alone catches.
 */
import {
  fakeProvisionerContext,
  planSuite,
  provisionerCases,
  provisionerSuite,
  runCase,
  type ProvisionerContext,
} from '@eitri/conformance';
import type { Provisioner } from '@eitri/core/contracts';
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectCaught } from '../support/caught.js';
import { brokenProvisioners, type Breaker } from './broken/provisioners.js';

provisionerSuite('provisioner: the fake', async () => {
  const context = await fakeProvisionerContext();
  onTestFinished(() => {
    expect(context.world.host.violations).toEqual([]);
  });
  return context;
});

const membersOf = (good: Provisioner): Provisioner => ({
  capabilities: good.capabilities,
  preflight: good.preflight,
  prepareRootDisk: good.prepareRootDisk,
  boot: good.boot,
  observe: good.observe,
  failureReason: good.failureReason,
  address: good.address,
  networkAddress: good.networkAddress,
  resume: good.resume,
  shutdown: good.shutdown,
  destroy: good.destroy,
});

const contextOf = (breaker: Breaker): Promise<ProvisionerContext> =>
  fakeProvisionerContext((good, world) => ({ ...membersOf(good), ...breaker(good, world) }));

describe('a broken provisioner', () => {
  it.each(provisionerCases.map((one) => ({ one, name: one.name })))('is caught by: $name', async ({ one }) => {
    await expectCaught(one, () => contextOf(brokenProvisioners[one.name]));
  });
});

describe('a factory with few knobs', () => {
  const needy = provisionerCases.filter((c) => c.needs.length > 0);

  it('a knob that a case declares is missing: the case fails with a sentence that says what to do', async () => {
    for (const one of needy) {
      const bare = async (): Promise<ProvisionerContext> => ({ ...(await fakeProvisionerContext()), faults: {} });
      await expect(runCase(one, bare), one.name).rejects.toThrow(
        /needs the fault "\w+".*give it, or leave the case out/,
      );
    }
  });

  it('only the knobs that a case declares are there: the case passes', async () => {
    for (const one of provisionerCases) {
      const sparse = async (): Promise<ProvisionerContext> => {
        const context = await fakeProvisionerContext();
        const faults = Object.fromEntries(
          Object.entries(context.faults).filter(([k]) => (one.needs as string[]).includes(k)),
        );
        return { ...context, faults };
      };
      await runCase(one, sparse);
    }
  });
});

describe('what is left out of a suite', () => {
  it('a case is left out with a reason: it is not run, and its reason is kept for the reader', () => {
    const [first] = provisionerCases;
    const plan = planSuite(provisionerCases, { [first?.name ?? '']: 'it has no network' });
    expect(plan.run).toHaveLength(provisionerCases.length - 1);
    expect(plan.leftOut).toEqual([{ case: first, reason: 'it has no network' }]);
    expect(plan.troubles).toEqual([]);
  });

  it('a name that no case has, or an empty reason: trouble', () => {
    const [first] = provisionerCases;
    const plan = planSuite(provisionerCases, { 'no such case': 'because', [first?.name ?? '']: ' ' });
    expect(plan.troubles).toHaveLength(2);
  });
});

const said: string[] = [];
provisionerSuite('provisioner: the fake, a case left out', fakeProvisionerContext, {
  without: { "a tap won't go: destroy rejects, and a later destroy works": 'tried in the suite above' },
  say: (line) => said.push(line),
});

it('a suite with a case left out has run: the reason was said', () => {
  expect(said).toEqual([expect.stringContaining('tried in the suite above')]);
});
