/**
 * Guests' taps: what makes one true, as lines for `ip -batch`. Pure; the caller asks and acts.
 *
 * A tap gets its name only when it bears our mark, so that whatever has such a name without the mark is a stranger's. It
 * is a port of its bridge before it is up: no VMM ever finds it outside.
 */
import { isOurs } from './bridge.js';
import type { Link, Links } from './links.js';
import { isTapName, isUnmarkedName, natTapOf, namedTapOf, unmarkedName } from './names.js';

export interface TapWant {
  readonly name: string;
  readonly bridge: string;
  readonly isolated: boolean;
}

/** Why the device of this name can't be ours; undefined: it is, or there is none. */
export function foreignTap(links: Links, name: string, stateId: string): string | undefined {
  const link = links.get(name);
  if (link === undefined || (link.kind === 'tap' && isOurs(link, stateId))) return undefined;
  return `the device ${name} is not this agent's: ${link.kind === 'tap' ? `it bears ${link.alias === undefined ? 'no mark' : `the mark "${link.alias}"`}` : `it is a ${link.kind ?? 'real one'}`}`;
}

/** The lines that make a tap true; none where it is. */
export function tapLines(links: Links, want: TapWant, stateId: string): readonly string[] {
  const link = links.get(want.name);
  if (link === undefined) return newTap(links, want, stateId);
  const lines: string[] = [];
  if (link.master !== want.bridge) lines.push(`link set dev ${want.name} master ${want.bridge}`);
  // A port that changes its bridge loses its isolation with it.
  if (want.isolated !== (link.isolated && link.master === want.bridge)) lines.push(isolationLine(want));
  if (!link.up) lines.push(`link set dev ${want.name} up`);
  return lines;
}

/** What is not as it should be, for people; undefined: all is well. */
export function tapTrouble(link: Link | undefined, { name, bridge, isolated }: TapWant): string | undefined {
  if (link === undefined) return `${name} is not there`;
  if (link.master !== bridge)
    return `${name} is ${link.master === undefined ? 'on no bridge' : `on ${link.master}`}, not on ${bridge}`;
  if (!link.up) return `${name} is down`;
  return link.isolated === isolated ? undefined : `${name} is ${isolated ? 'not isolated' : 'isolated'}`;
}

function newTap(links: Links, want: TapWant, stateId: string): readonly string[] {
  const unmarked = unmarkedName(want.name);
  return [
    ...(links.has(unmarked) ? [`link delete dev ${unmarked}`] : []),
    `tuntap add dev ${unmarked} mode tap`,
    // No address of the host's own on it: it is a port, and the bridge speaks.
    `link set dev ${unmarked} alias ${stateId} addrgenmode none`,
    `link set dev ${unmarked} name ${want.name}`,
    `link set dev ${want.name} master ${want.bridge}`,
    ...(want.isolated ? [isolationLine(want)] : []),
    `link set dev ${want.name} up`,
  ];
}

const isolationLine = ({ name, isolated }: TapWant): string =>
  `link set dev ${name} type bridge_slave isolated ${isolated ? 'on' : 'off'}`;

/** All taps of ours, whoever they belong to. */
export const ourTaps = (links: Links, stateId: string): readonly Link[] =>
  [...links.values()].filter((link) => isTapName(link.name) && link.kind === 'tap' && isOurs(link, stateId));

/** What an agent left half made. */
export const halfMade = (links: Links, stateId: string): readonly Link[] =>
  [...links.values()].filter(
    ({ name, alias, kind, master }) =>
      isUnmarkedName(name) &&
      (kind === 'tap' || kind === 'bridge') &&
      master === undefined &&
      (alias === undefined || alias === stateId),
  );

/** Our taps that belong to none of these lives. */
export function orphans(links: Links, stateId: string, uids: ReadonlySet<string>): readonly Link[] {
  const kept = new Set([...uids].flatMap((uid) => [natTapOf(uid), namedTapOf(uid)]));
  return ourTaps(links, stateId).filter(({ name }) => !kept.has(name));
}
