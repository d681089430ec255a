/**
 * The guests' bridge: what makes it true, as lines for `ip -batch`. Pure; the caller asks and acts.
 *
 * Its MAC is explicit: see `bridgeMacOf`.
 */
import type { Link, Links } from './links.js';
import { BRIDGE, unmarkedName } from './names.js';

export interface BridgeWant {
  readonly stateId: string;
  readonly mac: string;
  /** With the prefix: `10.77.1.1/24`. */
  readonly address: string;
}

export interface BridgeFix {
  readonly lines: readonly string[];
  readonly mended: readonly string[];
}

/** Why a device of the bridge's name is not ours; undefined: it is, or there is none. */
export function foreignBridge(links: Links, stateId: string): string | undefined {
  const link = links.get(BRIDGE);
  if (link === undefined || (link.kind === 'bridge' && link.alias === stateId)) return undefined;
  const whose = link.alias === undefined ? 'bears no mark' : `is marked "${link.alias}"`;
  return `the device ${BRIDGE} is not this agent's: it ${whose}, and "${stateId}" would be ours; rename or remove it (ip link delete ${BRIDGE}), or end the agent that it belongs to`;
}

/** The lines that are missing. `addresses` are those that the bridge has now. */
export function bridgeFix(links: Links, addresses: readonly string[], want: BridgeWant): BridgeFix {
  const link = links.get(BRIDGE);
  if (link === undefined) return newBridge(links, want);
  const lines: string[] = [];
  const mended: string[] = [];
  if (link.mac !== want.mac) {
    lines.push(`link set dev ${BRIDGE} address ${want.mac}`);
    mended.push(`${BRIDGE} has its own MAC ${want.mac} again`);
  }
  for (const other of addresses.filter((address) => address !== want.address)) {
    lines.push(`address delete ${other} dev ${BRIDGE}`);
    mended.push(`${BRIDGE} has lost the address ${other}, which is not its own`);
  }
  if (!addresses.includes(want.address)) {
    lines.push(`address add ${want.address} broadcast + dev ${BRIDGE}`);
    mended.push(`${BRIDGE} has its address ${want.address} again`);
  }
  if (!link.up) {
    lines.push(`link set dev ${BRIDGE} up`);
    mended.push(`${BRIDGE} is up again`);
  }
  return { lines, mended };
}

function newBridge(links: Links, { stateId, mac, address }: BridgeWant): BridgeFix {
  const unmarked = unmarkedName(BRIDGE);
  return {
    lines: [
      ...(links.has(unmarked) ? [`link delete dev ${unmarked}`] : []),
      `link add name ${unmarked} address ${mac} type bridge`,
      `link set dev ${unmarked} alias ${stateId}`,
      // LAST: by its name it is ours from here on, and it bears our mark already.
      `link set dev ${unmarked} name ${BRIDGE}`,
      `address add ${address} broadcast + dev ${BRIDGE}`,
      `link set dev ${BRIDGE} up`,
    ],
    mended: [`${BRIDGE} was gone and is there again`],
  };
}

export const isOurs = (link: Link | undefined, stateId: string): boolean => link?.alias === stateId;
