/**
 * Networks that break one promise each: for every case of the network's suite one that it must catch. A case without one
 * does not compile.
 */
import type { FakeNetHost, NetworkCaseName, NetworkLife } from '@eitri/conformance';
import type { HostNetwork, Network, VmUid } from '@eitri/core/contracts';
import { permanent, retryable } from '@eitri/core/kit';

/** Changes some members of the good fake. */
export interface BrokenNetwork {
  readonly network?: Partial<Network>;
  readonly hostNetwork?: Partial<HostNetwork>;
}

export type NetworkBreaker = (good: NetworkLife, host: FakeNetHost) => BrokenNetwork;

const calm = (): AbortSignal => new AbortController().signal;
const BRIDGE = 'eitri0';
const resolved = (): Promise<void> => Promise.resolve();

/** A network that counts up and never looks whether an address is taken. */
const countsOnly = (good: NetworkLife): Pick<Network, 'reserveIp' | 'address'> => {
  const given = new Map<VmUid, string>();
  return {
    reserveIp: async (uid, mac, signal) => {
      const address = await good.network.reserveIp(uid, mac, signal);
      given.set(uid, `10.77.1.${(2 + (given.size % 200)).toString()}`);
      return given.get(uid) ?? address;
    },
    address: (uid) => Promise.resolve(given.get(uid)),
  };
};

export const brokenNetworks: Readonly<Record<NetworkCaseName, NetworkBreaker>> = {
  'the host is fit: verified and checked ten times, and nothing is made by it': (good) => ({
    hostNetwork: { checkUplink: (signal) => good.hostNetwork.ensureBridge(signal) },
  }),
  'the bridge of a named network is missing: refused, permanent, by the flag and its names': (_good, host) => ({
    hostNetwork: {
      verifyNetworks: () =>
        host.bridges.has('br-lab') ? resolved() : Promise.reject(permanent('ENODEV: no such device')),
    },
  }),
  'the guest subnet overlaps a route of the host: refused, permanent, and nothing is made': () => ({
    hostNetwork: { checkUplink: resolved },
  }),
  "a stranger has the bridge's name: refused, permanent, and the stranger is left": (good, host) => ({
    hostNetwork: {
      ensureBridge: (signal) => {
        host.bridges.delete(BRIDGE);
        return good.hostNetwork.ensureBridge(signal);
      },
    },
  }),
  'the bridge is ensured ten times: the same one, with one rule': (good, host) => ({
    hostNetwork: {
      ensureBridge: async (signal) => {
        const before = host.rules;
        await good.hostNetwork.ensureBridge(signal);
        host.rules = before + 1;
      },
    },
  }),
  'guests come and go: the bridge keeps its MAC': (good, host) => ({
    network: {
      createTap: async (request, signal) => {
        await good.network.createTap(request, signal);
        host.bridges.set(BRIDGE, { mac: request.mac, foreign: false });
      },
    },
  }),
  'the subnet and the named networks are asked for ten times: the same, sorted': (good) => ({
    hostNetwork: { hostNetworks: async () => [...(await good.hostNetwork.hostNetworks())].reverse() },
  }),
  'the agent restarts and replays: the address is known, answered, and not given to another': () => ({
    hostNetwork: { replayReservations: resolved },
  }),
  "the agent restarts and can't read a record: its guest is answered as before, also after a repair": (good) => ({
    hostNetwork: {
      replayReservations: (reservations, signal) =>
        good.hostNetwork.replayReservations(
          reservations.filter((one) => 'address' in one),
          signal,
        ),
    },
  }),
  'reservations are replayed ten times: as once': (good) => {
    let replayed = false;
    return {
      hostNetwork: {
        replayReservations: async (reservations, signal) => {
          if (replayed) throw retryable('already replayed');
          replayed = true;
          await good.hostNetwork.replayReservations(reservations, signal);
        },
      },
    };
  },
  'DHCP is started ten times, and by the next agent: one server, and guests keep their addresses': (good, host) => ({
    hostNetwork: {
      startDhcp: async (signal) => {
        const before = host.servers;
        await good.hostNetwork.startDhcp(signal);
        host.servers = before + 1;
      },
    },
  }),
  'nothing drifted: repair mends nothing, ten times': (good) => ({
    hostNetwork: {
      repair: async (signal) => {
        await good.hostNetwork.repair(signal);
        return ['the rules were written again, to be sure'];
      },
    },
  }),
  'the rules are flushed, ten times: put back each time, once': (good, host) => ({
    hostNetwork: {
      repair: async (signal) => {
        const gone = host.rules === 0;
        const mended = await good.hostNetwork.repair(signal);
        if (gone) host.rules = 2;
        return mended;
      },
    },
  }),
  'the bridge is deleted: it is there again, with its guests on it and DHCP that answers them': (good, host) => ({
    hostNetwork: {
      repair: async (signal) => {
        const gone = !host.bridges.has(BRIDGE);
        const mended = await good.hostNetwork.repair(signal);
        // The server still listens on the device that is no more.
        if (gone) host.answers = new Map();
        return mended;
      },
    },
  }),
  'a tap is taken off its bridge: it is on it again': (good, host) => ({
    hostNetwork: {
      repair: async (signal) => {
        const detached = [...host.detached];
        host.detached.clear();
        const mended = await good.hostNetwork.repair(signal);
        for (const tap of detached) host.detached.add(tap);
        return mended;
      },
    },
  }),
  'the DHCP server dies: it answers again': (good, host) => ({
    hostNetwork: {
      repair: async (signal) => {
        const servers = host.servers;
        host.servers = 1;
        const mended = await good.hostNetwork.repair(signal);
        host.servers = servers;
        return servers === 0 ? [...mended, 'dhcp answers again'] : mended;
      },
    },
  }),
  'the network is closed: bridge, rules, taps and DHCP stand': (good) => ({
    hostNetwork: { close: () => good.hostNetwork.teardown(calm()) },
  }),
  'the network is taken down, ten times: nothing of it is left, and it comes up again': (good, host) => ({
    hostNetwork: {
      teardown: async (signal) => {
        const rules = host.rules;
        await good.hostNetwork.teardown(signal);
        host.rules = rules;
      },
    },
  }),
  "an address is reserved ten times: the same one, of the guest subnet, and not the network's, the host's or the broadcast":
    () => ({ network: { reserveIp: () => Promise.resolve('10.77.1.1') } }),
  'guests reserve at once: each has an address of its own': (good) => {
    let before: Promise<unknown> = Promise.resolve();
    let last = '10.77.1.2';
    return {
      network: {
        // Two that come at once look at the same last one.
        reserveIp: async (uid, mac, signal) => {
          const waited = before;
          before = good.network.reserveIp(uid, mac, signal).then((address) => (last = address));
          await waited;
          return last;
        },
      },
    };
  },
  'an address is asked for before it is reserved: undefined, and none is taken': (good) => ({
    network: { address: (uid, signal) => good.network.reserveIp(uid, '02:00:00:00:00:99', signal) },
  }),
  'all addresses are reserved: one more is refused, retryable, and given when one is free again': (good) => ({
    network: countsOnly(good),
  }),
  'a tap is created ten times: one device, up and on the bridge': (good) => ({
    network: {
      createTap: async (request, signal) => {
        await good.network.createTap(request, signal);
        await good.network.createTap({ ...request, named: { network: 'lab', mac: '02:00:00:00:00:98' } }, signal);
      },
    },
  }),
  'a guest is attached: its client is given the reserved address, and a stranger nothing': (good, host) => ({
    network: {
      createTap: async (request, signal) => {
        const answers = new Map(host.answers);
        await good.network.createTap(request, signal);
        // It is written, and nobody told the server.
        host.answers = answers;
      },
    },
  }),
  'guests are attached at once: each is given its own address': (good, host) => ({
    network: {
      createTap: async (request, signal) => {
        await good.network.createTap(request, signal);
        // The last one to write the file wins.
        host.answers = new Map([[request.mac, request.address]]);
      },
    },
  }),
  "a named network is asked for: a second tap on its bridge, and the first one on the guests'": (good, host) => ({
    network: {
      createTap: async (request, signal) => {
        await good.network.createTap(request, signal);
        if (request.named !== undefined) host.detached.add(await good.network.tapName(request.uid));
      },
    },
  }),
  "a stranger's device has the tap's name: refused, permanent, and the device is left": (good, host) => ({
    network: {
      createTap: (request, signal) => {
        host.network.foreignDevices.clear();
        return good.network.createTap(request, signal);
      },
    },
  }),
  'a guest is taken off, ten times: no tap, no reservation, no lease': (good, host) => ({
    network: {
      deleteTap: async (uid, signal) => {
        const answers = new Map(host.answers);
        await good.network.deleteTap(uid, signal);
        host.answers = answers;
      },
    },
  }),
  'a guest that never was is taken off: resolved, and the others keep what they have': (good, host) => ({
    network: {
      deleteTap: async (uid, signal) => {
        await good.network.deleteTap(uid, signal);
        host.network.reboot();
      },
    },
  }),
  "a guest's address is free again: the next guest that has it is given it, though it was leased": (good, host) => ({
    network: {
      deleteTap: async (uid, signal) => {
        const leases = new Map(host.leases);
        await good.network.deleteTap(uid, signal);
        for (const [address, mac] of leases) host.leases.set(address, mac);
      },
    },
  }),
  'names of taps: the same at each call, distinct, and within what the kernel takes': () => ({
    // Cut to what the kernel takes: all ids that begin alike are one.
    network: { tapName: (uid) => Promise.resolve(`eit-${uid}`.slice(0, 15)) },
  }),
  'a guest exists, and then the host has a route that overlaps its subnet: the start goes on': (_good, host) => ({
    hostNetwork: {
      checkUplink: () => (host.overlap === undefined ? resolved() : Promise.reject(permanent('the subnet overlaps'))),
    },
  }),
  "two records tell of one address, and one of another subnet's: the first is answered, the others have no address": (
    _good,
    host,
  ) => ({
    hostNetwork: {
      replayReservations: (reservations) => {
        for (const one of reservations) if ('address' in one) host.network.replay(one.uid, one.mac, one.address);
        return resolved();
      },
    },
  }),
  'the network is examined ten times, before it is made and while it stands: all is well, and nothing is changed': (
    good,
  ) => ({
    hostNetwork: {
      // One that mends what it looks at.
      examine: async (signal) => {
        await good.hostNetwork.ensureBridge(signal);
        return good.hostNetwork.examine(signal);
      },
    },
  }),
  'the host has a route that overlaps the guest subnet: told when it is examined, with the subnet': (good) => ({
    hostNetwork: {
      examine: async (signal) =>
        (await good.hostNetwork.examine(signal)).map((finding) => ({ ...finding, level: 'ok' as const })),
    },
  }),
  'the network is taken down by a call that is given up: it is down': (good) => ({
    hostNetwork: {
      teardown: async (signal) => {
        if (!signal.aborted) await good.hostNetwork.teardown(signal);
      },
    },
  }),
  'two lives come with one MAC: the second is refused, permanent': (good) => ({
    network: { reserveIp: (uid, _mac, signal) => good.network.reserveIp(uid, `02:${uid.slice(-14)}`, signal) },
  }),
  'a named network that this host does not serve: refused, permanent, and no tap is left': (_good, host) => {
    host.network.served = undefined;
    return {};
  },
  'a guest is taken off by a call that is given up: nothing of it is left': (good) => ({
    network: {
      deleteTap: async (uid, signal) => {
        if (!signal.aborted) await good.network.deleteTap(uid, signal);
      },
    },
  }),
};
