/**
 * The network suite's factory over netenv-linux: a host of namespaces, looked at with the host's own tools.
 */
import { existsSync } from 'node:fs';
import { sampleUid, type NetworkContext, type NetworkLife, type ProbedTap } from '@eitri/conformance';
import { namedMac, natMac } from '@eitri/core/kit';
import { until } from '../until.js';
import { NetenvLab, type NetClient } from './lab.js';

const NAMED = { name: 'lab', bridge: 'br-lab' };
/** 10.77.9.0/29 without network, host and broadcast. */
const SUBNET = '10.77.9.0/29';
const MOST_GUESTS = 5;

export async function netenvContext(): Promise<NetworkContext> {
  const lab = await NetenvLab.make();
  try {
    return await contextOf(lab);
  } catch (error) {
    await lab.remove();
    throw error;
  }
}

async function contextOf(lab: NetenvLab): Promise<NetworkContext> {
  await lab.host.ip(`link add ${NAMED.bridge} type bridge`);
  const newLife = (): Promise<NetworkLife> =>
    lab.agent({ settings: { bridgeCidr: SUBNET, namedNetworks: [NAMED, { ...NAMED, name: 'attic' }] } });
  let vms = 0;
  // One client a MAC: a new one would come with an old one still on the bridge.
  const clients = new Map<string, NetClient>();
  const clientOf = async (mac: string): Promise<NetClient> => {
    const known = clients.get(mac);
    if (known !== undefined) {
      await known.connect();
      return known;
    }
    const made = await lab.client(mac);
    clients.set(mac, made);
    return made;
  };
  const tap = (link: Readonly<Record<string, unknown>>): ProbedTap => ({
    name: String(link['ifname']),
    bridge: typeof link['master'] === 'string' ? link['master'] : undefined,
    up: (link['flags'] as readonly string[]).includes('UP'),
  });
  return {
    ...(await newLife()),
    restart: newLife,
    newVm: () => {
      const uid = sampleUid(++vms);
      lab.records.add(uid);
      return { uid, mac: natMac(uid), namedMac: namedMac(uid) };
    },
    named: NAMED,
    mostGuests: MOST_GUESTS,
    dispose: () => lab.remove(),
    probes: {
      taps: async () => [...(await lab.links()).values()].map(tap).filter(({ name }) => /^ei[tnx]-/.test(name)),
      bridge: async () => {
        const link = (await lab.links()).get('eitri0');
        return link === undefined ? undefined : { name: 'eitri0', mac: String(link['address']) };
      },
      natRules: async () => (await lab.ruleset()).split('\n').filter((line) => line.includes('masquerade')).length,
      dhcpServers: async () => (await lab.dnsmasqPids()).length,
      lease: async (mac) => (await clientOf(mac)).lease(),
    },
    faults: {
      foreignDevice: async (name) => {
        await lab.host.exec('ip', 'link', 'add', name, 'type', 'bridge');
      },
      overlap: async () => {
        await lab.host.ip('route add 10.0.0.0/8 via 192.0.2.1 table 75');
      },
      removeNamedBridge: async () => {
        await lab.host.ip(`link delete ${NAMED.bridge}`);
      },
      flushRules: async () => {
        await lab.host.exec('nft', 'flush', 'ruleset');
      },
      removeBridge: async () => {
        await lab.host.ip('link delete eitri0');
      },
      detachTap: async (name) => {
        await lab.host.ip(`link set ${name} nomaster`);
      },
      killDhcp: async () => {
        const pids = await lab.dnsmasqPids();
        for (const pid of pids) process.kill(pid, 'SIGKILL');
        // Reaped, too: one that only waits for that still takes signals.
        await until(() => pids.every((pid) => !existsSync(`/proc/${pid.toString()}`)));
      },
    },
  };
}
