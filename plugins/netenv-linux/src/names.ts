/**
 * Names on the host. Devices are named by a hash of the uid, because 15 bytes hold no uid and an id may be used again by
 * another life; the bridge's MAC comes from the state, because a bridge without one takes the lowest of its ports', and
 * the gateway would change its MAC as guests come and go.
 */
import { createHash } from 'node:crypto';
import type { VmUid } from '@eitri/core/contracts';

export const BRIDGE = 'eitri0';
export const TABLE = 'eitri';
/**
 * Devices bear such a name until they bear our mark, so that one of ours that an agent left half made is never taken for
 * a stranger's. Nobody else has a use for the name.
 */

const TAP_NAME = /^ei[tn]-[0-9a-f]{8}$/;

const hashOf = (text: string, digits: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, digits);

export const natTapOf = (uid: VmUid | string): string => `eit-${hashOf(uid, 8)}`;
export const namedTapOf = (uid: VmUid | string): string => `ein-${hashOf(uid, 8)}`;

export const isTapName = (name: string): boolean => TAP_NAME.test(name);
export const isNatTap = (name: string): boolean => isTapName(name) && name.startsWith('eit-');

/** The name under which a device of ours is made. At most 15 bytes, as `name` is. */
export const unmarkedName = (name: string): string =>
  name === BRIDGE ? 'eix-bridge' : `eix${name.slice(2, 3)}${name.slice(3)}`;
export const isUnmarkedName = (name: string): boolean => /^eix(-bridge|[tn]-[0-9a-f]{8})$/.test(name);

/** `02`: locally administered. */
export const bridgeMacOf = (stateId: string): string =>
  ['02', ...(hashOf(`bridge ${stateId}`, 10).match(/../g) ?? [])].join(':');

/** Where a uid's search for an address begins: the same for the same uid, so that one lost before it was kept is found again. */
export const placeOf = (uid: VmUid, room: number): number => parseInt(hashOf(`address ${uid}`, 12), 16) % room;
