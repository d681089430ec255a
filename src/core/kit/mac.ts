/**
 * MAC addresses of guests: `02` (locally administered) and five bytes of a hash of the uid, one for each NIC. Stable for
 * a life, and unique over the bridges of a fleet as far as forty bits go; a collision on one host is an error.
 */
import type { VmUid } from '../contracts/vm-spec.js';
import { shortHash } from './names.js';

function macOf(text: string): string {
  const hex = shortHash(text, 10);
  const pairs = hex.match(/../g) ?? [];
  return ['02', ...pairs].join(':');
}

/** MAC of the first NIC (eth0). */
export const natMac = (uid: VmUid): string => macOf(`nat ${uid}`);
/** MAC of the named network's NIC (eth1). */
export const namedMac = (uid: VmUid): string => macOf(`named ${uid}`);
