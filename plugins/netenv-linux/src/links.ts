/**
 * Devices as `ip -json -details` tells them, in the terms of this plugin. Pure.
 */
import { numberOf, objectOf, parseList, textOf, wordsOf, type JsonObject } from './parse.js';

export interface Link {
  readonly name: string;
  readonly index: number;
  /** `bridge`, `tap`, or another kind's name; undefined: real hardware, or the loopback. */
  readonly kind: string | undefined;
  readonly mac: string | undefined;
  readonly alias: string | undefined;
  /** The bridge that it is a port of. */
  readonly master: string | undefined;
  /** Whether it was set up; not whether somebody is at its other end. */
  readonly up: boolean;
  /** Whether it reaches no other port of its bridge that is isolated as well. */
  readonly isolated: boolean;
}

export type Links = ReadonlyMap<string, Link>;

/** Undefined: not what `ip -json -details link show` prints. */
export function parseLinks(text: string): Links | undefined {
  const list = parseList(text);
  if (list === undefined) return undefined;
  const links = new Map<string, Link>();
  for (const entry of list) {
    const link = linkOf(entry);
    if (link === undefined) return undefined;
    links.set(link.name, link);
  }
  return links;
}

function linkOf(entry: JsonObject): Link | undefined {
  const name = textOf(entry, 'ifname');
  const index = numberOf(entry, 'ifindex');
  if (name === undefined || index === undefined) return undefined;
  const info = objectOf(entry, 'linkinfo');
  const kind = textOf(info, 'info_kind');
  const type = textOf(objectOf(info, 'info_data'), 'type');
  return {
    name,
    index,
    kind: kind === 'tun' && type !== undefined ? type : kind,
    mac: textOf(entry, 'address'),
    alias: textOf(entry, 'ifalias'),
    master: textOf(entry, 'master'),
    up: wordsOf(entry, 'flags').includes('UP'),
    isolated: objectOf(info, 'info_slave_data')?.['isolated'] === true,
  };
}
