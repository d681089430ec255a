/**
 * Whether the guests' subnet would take something from this host. Pure.
 *
 * Every route of every table counts: a VPN's stands in a table of its own, and our bridge's more specific one would
 * shadow it all the same. Not counted are the default route, also in its two halves (our subnet is cut out of it, as any
 * local subnet is), routes that lead nowhere, and what our own bridge has from a former start.
 */
import { formatCidr, overlaps, parseCidr, type Cidr } from './cidr.js';
import { parseList, textOf } from './parse.js';

export interface Route {
  readonly to: Cidr;
  readonly device: string;
  readonly table: string;
}

/** Undefined: not what `ip -4 -json route show table all` prints. */
export function parseRoutes(text: string): readonly Route[] | undefined {
  const list = parseList(text);
  if (list === undefined) return undefined;
  const routes: Route[] = [];
  for (const entry of list) {
    const type = textOf(entry, 'type') ?? 'unicast';
    const to = textOf(entry, 'dst');
    if (to === undefined) return undefined;
    const cidr = to === 'default' ? parseCidr('0.0.0.0/0') : parseCidr(to);
    if (cidr === undefined || (type !== 'unicast' && type !== 'local')) continue;
    // A route over several paths has its devices further inside: it counts as one to elsewhere.
    routes.push({
      to: cidr,
      device: textOf(entry, 'dev') ?? 'several devices',
      table: textOf(entry, 'table') ?? 'main',
    });
  }
  return routes;
}

const isDefault = ({ to }: Route): boolean => to.prefix <= 1;

/** The routes that a subnet of guests on this bridge would collide with. */
export const collisions = (guests: Cidr, bridge: string, routes: readonly Route[]): readonly Route[] =>
  routes.filter((route) => !isDefault(route) && route.device !== bridge && overlaps(guests, route.to));

export const describeRoute = ({ to, device, table }: Route): string =>
  `${formatCidr(to)} on ${device}${table === 'main' ? '' : ` (table ${table})`}`;
