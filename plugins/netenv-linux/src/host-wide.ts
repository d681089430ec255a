/**
 * What both halves of the network share: this host's devices, rules and server, and the one lock over them.
 */
import type { NetworkHost } from '@eitri/core/contracts';
import { formatCidr, gatewayOf, type Cidr } from './cidr.js';
import { sendDatagram, type SendDatagram } from './dhcp-release.js';
import { DhcpServer } from './dnsmasq.js';
import { IpTool } from './ip.js';
import { BRIDGE, bridgeMacOf, isNatTap } from './names.js';
import type { Link } from './links.js';
import { NftTable } from './nft.js';
import { Reservations } from './reservations.js';
import { rulesetOf } from './ruleset.js';
import { Serial } from './serial.js';
import type { BridgeWant } from './bridge.js';
import type { TapWant } from './taps.js';

export interface NetenvOptions {
  /** Where the host's name servers stand; absent: where the host's own resolver looks. */
  readonly resolvFile?: string;
  /** How a datagram leaves this host. */
  readonly send?: SendDatagram;
}

export class HostWide {
  readonly ip: IpTool;
  readonly nft: NftTable;
  readonly dhcp: DhcpServer;
  readonly reservations: Reservations;
  readonly bridge: BridgeWant;
  /** Devices are changed by one at a time: what was looked at still holds when it is acted on. */
  readonly devices = new Serial();
  /** Whether the reservations of the records are known: before that none is given away. */
  replayed = false;
  /** Whether DHCP was asked for: before that reservations are only kept. */
  answering = false;
  /** Bridges of the named taps, as far as they were seen: for those that fell off. */
  readonly namedBridges = new Map<string, string>();

  constructor(
    readonly host: NetworkHost,
    readonly cidr: Cidr,
    options: NetenvOptions,
  ) {
    const { stateId, runDir } = host.networkSettings;
    this.ip = new IpTool(host);
    this.nft = new NftTable(host, rulesetOf(cidr, BRIDGE), `${runDir}/rules`);
    this.reservations = new Reservations(cidr, host.errors);
    this.dhcp = new DhcpServer(host, cidr, () => this.reservations.served(), {
      resolvFile: options.resolvFile,
      send: options.send ?? sendDatagram,
    });
    this.bridge = { stateId, mac: bridgeMacOf(stateId), address: `${gatewayOf(cidr)}/${cidr.prefix.toString()}` };
  }

  get stateId(): string {
    return this.bridge.stateId;
  }

  get subnet(): string {
    return formatCidr(this.cidr);
  }

  /** How a tap of ours should be; undefined: a named one whose bridge nobody told. */
  wantOf(link: Pick<Link, 'name' | 'master'>): TapWant | undefined {
    const { name, master } = link;
    if (isNatTap(name)) return this.natWant(name);
    const declared = this.host.networkSettings.namedNetworks.map(({ bridge }) => bridge);
    const bridge =
      this.namedBridges.get(name) ?? (master !== undefined && declared.includes(master) ? master : undefined);
    return bridge === undefined ? undefined : { name, bridge, isolated: false };
  }

  natWant(name: string): TapWant {
    return { name, bridge: BRIDGE, isolated: this.host.networkSettings.guestIsolation };
  }
}
