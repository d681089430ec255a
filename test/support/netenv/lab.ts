/**
 * A host for the guests' network, made of namespaces: the host's own, a world behind its uplink, and clients that sit on
 * its bridge in the place of guests. Agents come and go over it; devices, rules and dnsmasq stay.
 *
 *     client ── veth ── eitri0 (host namespace) ── uplink veth ── world: 192.0.2.1, a name server, an echo
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NetworkBackend, NetworkHost, NetworkSettings } from '@eitri/core/contracts';
import { createNetenv } from '@eitri/plugin-netenv-linux';
import { removeFolder, sharedFolder } from '../temp.js';
import { makeNetworkHost, sendIn, type HostOptions, type LogLine } from './host.js';
import { Namespace } from './namespace.js';

export const WORLD = '192.0.2.1';
const HOST_ON_UPLINK = '192.0.2.2';
export const SUBNET = '10.77.9.0/28';

const calm = (): AbortSignal => new AbortController().signal;

export interface LabOptions extends Partial<Pick<HostOptions, 'prefix' | 'missing' | 'recordedUids'>> {
  readonly settings?: Partial<NetworkSettings>;
}

export class NetenvLab {
  readonly folder = sharedFolder('eit-net-');
  readonly runDir = join(this.folder, 'run');
  readonly log: LogLine[] = [];
  /** Records, as the agent's state would have them. */
  readonly records = new Set<string>();
  /** Where the host's name servers stand. */
  resolvFile = join(this.folder, 'resolv.conf');
  /** While set, datagrams to the server are lost. */
  deaf = false;
  private readonly namespaces: Namespace[] = [];
  private clients = 0;

  private constructor(
    readonly host: Namespace,
    readonly world: Namespace,
  ) {
    this.namespaces.push(host, world);
    mkdirSync(this.runDir);
    chmodSync(this.runDir, 0o711);
    writeFileSync(this.resolvFile, `nameserver ${WORLD}\n`, { mode: 0o644 });
  }

  static async make(): Promise<NetenvLab> {
    const host = await Namespace.make();
    const world = await Namespace.make().catch(async (error: unknown) => {
      await host.remove();
      throw error;
    });
    const lab = new NetenvLab(host, world);
    try {
      await lab.connectUplink();
    } catch (error) {
      await lab.remove();
      throw error;
    }
    return lab;
  }

  /** A new life of an agent over this host. */
  agent(options: LabOptions = {}): Promise<NetworkBackend> {
    return createNetenv(this.hostOf(options), calm(), {
      resolvFile: this.resolvFile,
      send: async (...datagram) => {
        if (!this.deaf) await sendIn(this.host.name, this.folder)(...datagram);
      },
    });
  }

  hostOf(options: LabOptions = {}): NetworkHost {
    const { settings, ...rest } = options;
    return makeNetworkHost({
      namespace: this.host.name,
      folder: this.folder,
      settings: { bridgeCidr: SUBNET, runDir: this.runDir, ...settings },
      log: this.log,
      recordedUids: () => Promise.resolve(this.records),
      ...rest,
    });
  }

  /** A client with this MAC on the guests' bridge; nobody's tap, so no VMM is needed to hold it. */
  async client(mac: string, bridge = 'eitri0'): Promise<NetClient> {
    const namespace = await Namespace.make();
    this.namespaces.push(namespace);
    const port = `cl${(this.clients++).toString()}`;
    await this.host.ip(`link add ${port} type veth peer name eth0 address ${mac} netns ${namespace.name}`);
    await namespace.ip('link set eth0 up');
    const client = new NetClient(namespace, this.host, port, bridge, this.folder);
    await client.connect();
    return client;
  }

  async dnsmasqPids(): Promise<readonly number[]> {
    const pids: number[] = [];
    for (const pid of await this.host.pids()) {
      const name = await this.host.exec('cat', `/proc/${pid.toString()}/comm`).catch(() => '');
      if (name.trim() === 'dnsmasq') pids.push(pid);
    }
    return pids;
  }

  async links(): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
    return new Map((await this.host.json('link show')).map((link) => [String(link['ifname']), link]));
  }

  /** Taps of ours, and whatever has such a name. */
  async taps(): Promise<readonly string[]> {
    return [...(await this.links()).keys()].filter((name) => /^ei[tnx]-/.test(name)).sort();
  }

  ruleset(): Promise<string> {
    return this.host.exec('nft', 'list', 'ruleset');
  }

  async remove(): Promise<void> {
    try {
      // All of them, also when one won't go.
      const ends = await Promise.allSettled(this.namespaces.reverse().map((namespace) => namespace.remove()));
      for (const end of ends) if (end.status === 'rejected') throw end.reason;
    } finally {
      removeFolder(this.folder);
    }
  }

  private async connectUplink(): Promise<void> {
    await this.host.ip(`link add up0 type veth peer name eth0 netns ${this.world.name}`);
    await this.host.ip(`address add ${HOST_ON_UPLINK}/24 dev up0`);
    await this.host.ip('link set up0 up');
    await this.host.ip(`route add default via ${WORLD}`);
    await this.world.ip(`address add ${WORLD}/24 dev eth0`);
    await this.world.ip('link set eth0 up');
  }
}

export class NetClient {
  private readonly script: string;

  constructor(
    readonly namespace: Namespace,
    private readonly host: Namespace,
    private readonly port: string,
    private readonly bridge: string,
    private readonly folder: string,
  ) {
    // udhcpc tells by its script alone; this one configures what a guest would.
    this.script = join(folder, `udhcpc-${port}`);
    const lines = [
      '#!/bin/sh',
      'case $1 in bound|renew)',
      'ip address replace "$ip/$mask" dev "$interface"',
      '[ -z "$router" ] || ip route replace default via "$router"',
      'esac',
      '',
    ];
    writeFileSync(this.script, lines.join('\n'), { mode: 0o755 });
  }

  /** Plugs it into its bridge, which may have been made anew; where there is no bridge, it hangs in the air. */
  async connect(): Promise<void> {
    await this.host.ip(`link set ${this.port} up`);
    await this.host.ip(`link set ${this.port} master ${this.bridge}`).catch(() => undefined);
  }

  /** Another guest in the same place: with that one's MAC, and without the address that the former had. */
  async become(mac: string): Promise<void> {
    await this.namespace.ip('address flush dev eth0');
    await this.namespace.ip(`link set dev eth0 address ${mac}`);
  }

  /** Asks for a lease; undefined: nobody gave one. */
  async lease(...more: readonly string[]): Promise<string | undefined> {
    const args = ['-i', 'eth0', '-n', '-q', '-f', '-t', '2', '-T', '1', '-s', this.script, ...more];
    try {
      const said = await this.namespace.exec('sh', '-c', 'exec udhcpc "$@" 2>&1', 'sh', ...args);
      return /lease of (\S+) obtained/.exec(said)?.[1];
    } catch {
      return undefined;
    }
  }

  /**
   * Broadcasts a DHCPREQUEST for an address as a client does that was restarted and remembers one (INIT-REBOOT). Answers
   * the type of the message that comes back; undefined: none does.
   */
  async remembers(mac: string, address: string): Promise<'ack' | 'nak' | undefined> {
    const packet = Buffer.alloc(300);
    packet.set([1, 1, 6, 0, 7, 7, 7, 7, 0, 0, 0x80], 0);
    packet.set(Buffer.from(mac.replaceAll(':', ''), 'hex'), 28);
    packet.set([99, 130, 83, 99, 53, 1, 3, 50, 4, ...address.split('.').map(Number), 255], 236);
    const file = join(this.folder, 'request');
    writeFileSync(file, packet);
    const everybody = 'UDP4-DATAGRAM:255.255.255.255:67,broadcast,bind=0.0.0.0:68,so-bindtodevice=eth0';
    // As text of hex digits: what comes back are bytes.
    const answer = await this.namespace.exec('sh', '-c', `socat -t 1 - ${everybody} < ${file} | od -An -v -tx1`);
    const bytes = answer
      .split(/\s+/)
      .filter(Boolean)
      .map((hex) => parseInt(hex, 16));
    const type = bytes.length < 243 ? undefined : bytes[242];
    return type === 5 ? 'ack' : type === 6 ? 'nak' : undefined;
  }
}
