/**
 * Names that touch paths, devices and the wire: parsed once, branded, never trusted before.
 */
import { createHash } from 'node:crypto';
import type { VmId, VmUid } from '../contracts/vm-spec.js';

const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;
const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const NETWORK = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/** The grammar of a VM id in words, for messages. */
export const ID_RULE = '1 to 63 of a-z, 0-9 and hyphen, not starting with a hyphen';

/** Whether a text may name a VM: 1 to 63 of `[a-z0-9-]`, no hyphen first. */
export const isVmId = (text: string): text is VmId => ID.test(text);
/** Whether a text is a lower-case UUID, of whatever version. */
export const isVmUid = (text: string): text is VmUid => UID.test(text);

/**
 * A name of a guest network: 1 to 32 of `[a-z0-9-]`, no hyphen at an end, and not `nat`, which is every guest's first.
 */
export const isNetworkName = (text: string): boolean => NETWORK.test(text) && text !== 'nat';

/** The first `length` hex digits of a hash: for names that must be short (devices, socket folders). */
export function shortHash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}

/** The known name nearest to a mistyped one, when it is near enough to be meant. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, substitution));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
