/**
 * The context of the network's suite over a fake host: how the suite is tried itself, and a model of a factory.
 */
import { namedMac, natMac } from '@eitri/core/kit';
import { FAKE_BRIDGE, FakeHostNetwork, FakeNetHost, someMac } from './fake-host-network.js';
import type { NetworkContext, NetworkLife } from './network/context.js';
import { sampleUid } from './samples.js';

const NAMED = { name: 'lab', bridge: 'br-lab' };
/** 10.77.1.2 to 10.77.1.254. */
const MOST_GUESTS = 253;

/**
 * A complete context over the fake network: run the suite over it, or copy it for a network of your own.
 *
 * @param wrap - What is tried instead of the good fake, made from it anew for each life of the agent: something
 * deliberately broken.
 */
export function fakeNetworkContext(
  wrap: (good: NetworkLife, host: FakeNetHost) => NetworkLife = (good) => good,
): NetworkContext {
  const host = new FakeNetHost();
  host.network.served = [NAMED.name, 'attic'];
  host.bridges.set(NAMED.bridge, { mac: someMac(NAMED.bridge), foreign: true });
  const newLife = (): NetworkLife =>
    wrap(
      {
        network: host.network,
        hostNetwork: new FakeHostNetwork(host, {
          namedNetworks: [
            [NAMED.name, NAMED.bridge],
            ['attic', NAMED.bridge],
          ],
        }),
      },
      host,
    );
  let vms = 0;
  return {
    ...newLife(),
    restart: () => {
      host.network.forgetReservations();
      return Promise.resolve(newLife());
    },
    newVm: () => {
      host.haveGuests = true;
      const uid = sampleUid(++vms);
      return { uid, mac: natMac(uid), namedMac: namedMac(uid) };
    },
    named: NAMED,
    mostGuests: MOST_GUESTS,
    dispose: () => Promise.resolve(),
    probes: {
      taps: () =>
        Promise.resolve(
          [...host.network.taps(), ...[...host.network.foreignDevices].filter((name) => name !== FAKE_BRIDGE)].map(
            (name) => ({ name, bridge: bridgeOf(host, name), up: !host.network.foreignDevices.has(name) }),
          ),
        ),
      bridge: () => {
        const bridge = host.bridges.get(FAKE_BRIDGE);
        return Promise.resolve(bridge === undefined ? undefined : { name: FAKE_BRIDGE, mac: bridge.mac });
      },
      natRules: () => Promise.resolve(host.rules),
      dhcpServers: () => Promise.resolve(host.servers),
      lease: (mac) => Promise.resolve(host.lease(mac)),
    },
    faults: {
      foreignDevice: (name) =>
        done(() => {
          if (name === FAKE_BRIDGE) host.bridges.set(name, { mac: someMac('a stranger'), foreign: true });
          else host.network.foreignDevices.add(name);
        }),
      overlap: () => done(() => (host.overlap = '10.0.0.0/8 on tun0')),
      removeNamedBridge: () => done(() => host.bridges.delete(NAMED.bridge)),
      flushRules: () => done(() => (host.rules = 0)),
      removeBridge: () =>
        done(() => {
          host.bridges.delete(FAKE_BRIDGE);
          for (const name of host.network.taps().filter((tap) => tap.startsWith('eit-'))) host.detached.add(name);
        }),
      detachTap: (name) => done(() => host.detached.add(name)),
      killDhcp: () =>
        done(() => {
          host.servers = 0;
          host.answers = undefined;
        }),
    },
  };
}

function bridgeOf(host: FakeNetHost, tap: string): string | undefined {
  if (host.detached.has(tap) || host.network.foreignDevices.has(tap)) return undefined;
  return tap.startsWith('ein-') ? NAMED.bridge : FAKE_BRIDGE;
}

async function done(work: () => unknown): Promise<void> {
  await Promise.resolve(work());
}
