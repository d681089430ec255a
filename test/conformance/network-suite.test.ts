/**
 * The network's suite, tried itself: the good fake passes all of it, and for each case there is a broken network that it
 * catches.
 */
import {
  fakeNetworkContext,
  networkCases,
  networkSuite,
  runCase,
  type NetworkContext,
  type NetworkLife,
} from '@eitri/conformance';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { expectCaught } from '../support/caught.js';
import { brokenNetworks, type NetworkBreaker } from './broken/networks.js';

networkSuite('network: the fake', () => fakeNetworkContext());

const membersOf = ({ network, hostNetwork }: NetworkLife): NetworkLife => ({
  network: {
    reserveIp: network.reserveIp,
    address: network.address,
    networkAddress: network.networkAddress,
    createTap: network.createTap,
    deleteTap: network.deleteTap,
    tapName: network.tapName,
    netTapName: network.netTapName,
  },
  hostNetwork: {
    verifyNetworks: hostNetwork.verifyNetworks,
    checkUplink: hostNetwork.checkUplink,
    ensureBridge: hostNetwork.ensureBridge,
    replayReservations: hostNetwork.replayReservations,
    startDhcp: hostNetwork.startDhcp,
    guestCidr: hostNetwork.guestCidr,
    hostNetworks: hostNetwork.hostNetworks,
    repair: hostNetwork.repair,
    examine: hostNetwork.examine,
    teardown: hostNetwork.teardown,
    close: hostNetwork.close,
  },
});

const contextOf = (breaker: NetworkBreaker): NetworkContext =>
  fakeNetworkContext((good, host) => {
    const plain = membersOf(good);
    const broken = breaker(good, host);
    return {
      network: { ...plain.network, ...broken.network },
      hostNetwork: { ...plain.hostNetwork, ...broken.hostNetwork },
    };
  });

describe('a broken network', () => {
  it.each(networkCases.map((one) => ({ one, name: one.name })))('is caught by: $name', async ({ one }) => {
    await expectCaught(one, () => contextOf(brokenNetworks[one.name]));
  });
});

describe('what the cases cite', () => {
  /** A contract's comments as running text. */
  const textOf = (name: string): string =>
    readFileSync(new URL(`../../src/core/contracts/${name}.ts`, import.meta.url), 'utf8')
      .replaceAll(/^\s*(\/\*\*|\*\/|\*)/gm, ' ')
      .replaceAll('*/', ' ')
      .replaceAll(/\s+/g, ' ');

  it.each(networkCases.map(({ name, promise }) => ({ name, promise })))(
    'stands in a contract: $name',
    ({ promise }) => {
      expect(`${textOf('network')} ${textOf('host-network')}`).toContain(promise);
    },
  );
});

describe('a factory with few knobs', () => {
  it('a knob that a case declares is missing: the case fails with a sentence that says what to do', async () => {
    for (const one of networkCases.filter(({ needs }) => needs.length > 0)) {
      const bare = (): NetworkContext => ({ ...fakeNetworkContext(), faults: {} });
      await expect(runCase(one, bare), one.name).rejects.toThrow(
        /needs the fault "\w+".*give it, or leave the case out/,
      );
    }
  });

  it('only the knobs that a case declares are there: the case passes', async () => {
    for (const one of networkCases) {
      const sparse = (): NetworkContext => {
        const context = fakeNetworkContext();
        const faults = Object.fromEntries(
          Object.entries(context.faults).filter(([name]) => (one.needs as readonly string[]).includes(name)),
        );
        return { ...context, faults };
      };
      await runCase(one, sparse);
    }
  });
});
