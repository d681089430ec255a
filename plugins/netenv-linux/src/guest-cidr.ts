/**
 * Which subnet guests live in: the one that this state has used before, else the flag's, else the control plane's
 * suggestion, else the last resort. Pure; what is chosen is kept by the agent.
 *
 * A subnet in use is not changed by a flag or a suggestion: its guests have addresses in it. That is said, and no error.
 */
import { formatCidr, guestRoom, overlaps, parseCidr, type Cidr } from './cidr.js';

/** A host that nobody advised. Two of them on one network would collide: never a default to build on. */
const LAST_RESORT = '10.77.1.0/24';
/** The largest subnet, as the length of its prefix: no more than one of the classes that sites carve up. */
const LEAST_PREFIX = 8;

export interface CidrSources {
  readonly persisted?: string | undefined;
  readonly flag?: string | undefined;
  readonly suggestion?: string | undefined;
}

export type ResolvedCidr =
  | {
      readonly ok: true;
      readonly cidr: Cidr;
      /** Sentences for the operator: what was asked for and is not in force. */
      readonly notes: readonly string[];
    }
  /** Permanent, in the words of whoever gave it. */
  | { readonly ok: false; readonly why: string };

/** Subnets that no network of guests can have, whoever asks. */
const RESERVED: readonly (readonly [string, string])[] = [
  ['0.0.0.0/8', 'means "this host"'],
  ['127.0.0.0/8', 'is the loopback'],
  ['169.254.0.0/16', 'is for link-local addresses'],
  ['224.0.0.0/3', 'is for multicast and experiments'],
];

export function resolveGuestCidr({ persisted, flag, suggestion }: CidrSources): ResolvedCidr {
  const asked = flag === undefined ? undefined : check(flag, `--bridge-cidr ${flag}`);
  // What somebody typed is judged also where it is not used: the mistake would wait for the next host.
  if (asked?.ok === false) return asked;
  if (persisted !== undefined) {
    const used = check(persisted, `the guest subnet kept in this state, "${persisted}",`);
    if (!used.ok) return used;
    const notes = [
      ...noteOf('--bridge-cidr', asked?.cidr, used.cidr),
      ...noteOf(
        "the control plane's suggestion",
        suggestion === undefined ? undefined : parseCidr(suggestion),
        used.cidr,
      ),
    ];
    return { ...used, notes };
  }
  if (asked !== undefined) return asked;
  if (suggestion !== undefined)
    return check(suggestion, `the guest subnet that the control plane suggests, "${suggestion}",`);
  return check(LAST_RESORT, LAST_RESORT);
}

function check(text: string, what: string): ResolvedCidr {
  const cidr = parseCidr(text);
  if (cidr === undefined || !text.includes('/')) {
    return { ok: false, why: `${what} is no IPv4 subnet: want one like ${LAST_RESORT}` };
  }
  if (formatCidr(cidr) !== text) {
    return { ok: false, why: `${what} has host bits set: did you mean ${formatCidr(cidr)}?` };
  }
  if (guestRoom(cidr) < 1) {
    return {
      ok: false,
      why: `${what} is too small: beside network, gateway and broadcast address it needs one for a guest (/30)`,
    };
  }
  if (cidr.prefix < LEAST_PREFIX) {
    return { ok: false, why: `${what} is too large: want a prefix of ${LEAST_PREFIX.toString()} or more` };
  }
  for (const [reserved, reason] of RESERVED) {
    const taken = parseCidr(reserved);
    if (taken !== undefined && overlaps(taken, cidr))
      return { ok: false, why: `${what} can't be used: ${reserved} ${reason}` };
  }
  return { ok: true, cidr, notes: [] };
}

function noteOf(what: string, asked: Cidr | undefined, used: Cidr): readonly string[] {
  if (asked === undefined || formatCidr(asked) === formatCidr(used)) return [];
  return [`${what} ${formatCidr(asked)} is not in force: this host's guests are on ${formatCidr(used)}`];
}
