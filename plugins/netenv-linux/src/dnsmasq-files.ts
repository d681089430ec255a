/**
 * What dnsmasq reads and writes: its configuration, the hosts that it may answer, the leases that it gave. Pure.
 */
import type { Reservation } from '@eitri/core/contracts';
import { formatIpv4, netmaskOf, type Cidr } from './cidr.js';

const LEASE = '12h';

/** The user that dnsmasq becomes. */
export interface ServiceUser {
  readonly name: string;
  readonly userId: number;
  readonly group: string;
  readonly groupId: number;
}

export interface DnsmasqPaths {
  readonly folder: string;
  readonly config: string;
  readonly hosts: string;
  readonly leases: string;
  readonly log: string;
  readonly pidFile: string;
}

export const dnsmasqPaths = (runDir: string): DnsmasqPaths => {
  const folder = `${runDir}/dhcp`;
  return {
    folder,
    config: `${folder}/dnsmasq.conf`,
    hosts: `${folder}/hosts`,
    leases: `${folder}/leases`,
    log: `${folder}/dnsmasq.log`,
    pidFile: `${folder}/dnsmasq.pid`,
  };
};

export interface DnsmasqWant {
  readonly cidr: Cidr;
  readonly bridge: string;
  /** The bridge's number: a server stays bound to the device that it began with, not to its name. */
  readonly bridgeIndex: number;
  readonly user: ServiceUser;
  readonly paths: DnsmasqPaths;
  /** Where the host's name servers stand; undefined: where the host's own resolver looks. */
  readonly resolvFile: string | undefined;
}

/**
 * Answers known MACs only, and them with authority: a guest that asks for an address of another network is told so, a
 * stranger hears nothing. `dhcp-ignore-clid`: systemd-networkd calls itself by a DUID, and would be a stranger.
 * `bind-dynamic`: beside other servers of this host, and on no address but the bridge's.
 */
export const configOf = ({
  cidr,
  bridge,
  bridgeIndex,
  user,
  paths,
  resolvFile,
}: DnsmasqWant): string => `# ${bridge} is device ${bridgeIndex.toString()}
keep-in-foreground
log-facility=-
quiet-dhcp
user=${user.name}
group=${user.group}
pid-file=
no-hosts
${resolvFile === undefined ? '' : `resolv-file=${resolvFile}\n`}bind-dynamic
interface=${bridge}
except-interface=lo
dhcp-range=${formatIpv4(cidr.network)},static,${netmaskOf(cidr)},${LEASE}
dhcp-authoritative
dhcp-ignore=tag:!known
dhcp-ignore-clid
dhcp-hostsfile=${paths.hosts}
dhcp-leasefile=${paths.leases}
`;

export const hostsOf = (reservations: readonly Reservation[]): string =>
  reservations.map(({ mac, address }) => `${mac},${address}\n`).join('');

/** What `hostsOf` wrote; a line that is something else is passed over. */
export const parseHosts = (text: string): readonly Lease[] =>
  text.split('\n').flatMap((line) => {
    const [, mac, address] = /^([0-9a-f]{2}(?::[0-9a-f]{2}){5}),([\d.]+)$/.exec(line) ?? [];
    return mac === undefined || address === undefined ? [] : [{ mac, address }];
  });

export interface Lease {
  readonly mac: string;
  readonly address: string;
}

/** `expiry mac address name client-id` a line; what is no such line (IPv6, a server's own DUID) is passed over. */
export function parseLeases(text: string): readonly Lease[] {
  return text.split('\n').flatMap((line) => {
    const [expiry, mac, address] = line.split(' ');
    if (!/^\d+$/.test(expiry ?? '') || mac === undefined || address === undefined) return [];
    return /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(mac) ? [{ mac: mac.toLowerCase(), address }] : [];
  });
}

/** The file without this lease. */
export const withoutLease = (text: string, lease: Lease): string =>
  text
    .split('\n')
    .filter((line) => !parseLeases(line).some((held) => held.mac === lease.mac && held.address === lease.address))
    .join('\n');

/** How a reload of the hosts went, as dnsmasq's log tells; undefined: it says nothing of it yet. */
export function reloadOutcome(log: string, hosts: string): { readonly ok: boolean; readonly line: string } | undefined {
  for (const line of log.split('\n').reverse()) {
    if (line.endsWith(`: read ${hosts}`)) return { ok: true, line };
    if (line.includes(`${hosts}: `) && /(cannot|failed to) (read|open|access|load)/.test(line))
      return { ok: false, line };
  }
  return undefined;
}

/** The last thing that dnsmasq said, without its name and pid. */
export const lastWords = (log: string): string =>
  (log.trimEnd().split('\n').at(-1) ?? '').replace(/^dnsmasq[-a-z]*(\[\d+\])?: /, '').trim();

/** `name:x:uid:gid:…` of `getent passwd`, or `name:x:gid:…` of `getent group`. */
export const fieldsOf = (line: string): readonly string[] => line.trim().split(':');
