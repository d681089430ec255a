/**
 * Which guest has which address. Kept in memory: the agent's records are what lasts, and are replayed at each start.
 *
 *     (none) ── reserve, replay ──► held ── leave ──► leaving ── forget ──► (none)
 *
 * A reservation that leaves is not served any more, and its address is not given away until nothing of it is left.
 */
import type { ErrorFactory, Reservation, VmUid } from '@eitri/core/contracts';
import { formatCidr, guestAddress, guestRoom, isGuestAddress, parseIpv4, type Cidr } from './cidr.js';
import { natTapOf, placeOf } from './names.js';

export class Reservations {
  private readonly byUid = new Map<VmUid, Reservation>();
  private readonly leaving = new Set<VmUid>();

  constructor(
    readonly cidr: Cidr,
    private readonly errors: ErrorFactory,
  ) {}

  /** Puts back what a record tells. Answers why it can't be, as a sentence; the others are not touched by that. */
  replay(reservation: Reservation): string | undefined {
    const { uid, address } = reservation;
    if (!isGuestAddress(this.cidr, address)) return `${address} is no address for guests of ${formatCidr(this.cidr)}`;
    const other = this.conflict(reservation);
    if (other !== undefined) return other;
    this.byUid.set(uid, reservation);
    return undefined;
  }

  /** The address of this life, chosen now if it has none. */
  reserve(uid: VmUid, mac: string): string {
    const known = this.byUid.get(uid);
    if (known !== undefined) return known.address;
    const address = this.freeAddress(uid);
    if (address === undefined) {
      throw this.errors.retryable(
        `no address is left in ${formatCidr(this.cidr)}: all ${guestRoom(this.cidr).toString()} are reserved`,
        { code: 'Capacity' },
      );
    }
    const reservation = { uid, mac, address };
    const conflict = this.conflict(reservation);
    if (conflict !== undefined)
      throw this.errors.permanent(`reserve an address for ${uid}: ${conflict}`, { code: 'NetworkFailed' });
    this.byUid.set(uid, reservation);
    return address;
  }

  of(uid: VmUid): Reservation | undefined {
    return this.byUid.get(uid);
  }

  /** What DHCP answers by, in the order of addresses, so that equal reservations give equal bytes. */
  served(): readonly Reservation[] {
    return [...this.byUid.values()]
      .filter(({ uid }) => !this.leaving.has(uid))
      .sort((a, b) => (parseIpv4(a.address) ?? 0) - (parseIpv4(b.address) ?? 0));
  }

  leave(uid: VmUid): void {
    this.leaving.add(uid);
  }

  /** It could not be taken back: it is served again. */
  stay(uid: VmUid): void {
    this.leaving.delete(uid);
  }

  forget(uid: VmUid): void {
    this.byUid.delete(uid);
    this.leaving.delete(uid);
  }

  private freeAddress(uid: VmUid): string | undefined {
    const room = guestRoom(this.cidr);
    const taken = new Set([...this.byUid.values()].map(({ address }) => address));
    if (taken.size >= room) return undefined;
    const start = placeOf(uid, room);
    for (let n = 0; n < room; n++) {
      const address = guestAddress(this.cidr, (start + n) % room);
      if (!taken.has(address)) return address;
    }
    return undefined;
  }

  /** What two lives would have in common and must not. */
  private conflict({ uid, mac, address }: Reservation): string | undefined {
    for (const other of this.byUid.values()) {
      if (other.uid === uid) continue;
      if (other.address === address) return `${address} is reserved for ${other.uid}`;
      if (other.mac === mac) return `its MAC ${mac} is that of ${other.uid}`;
      if (natTapOf(other.uid) === natTapOf(uid))
        return `the name of its tap, ${natTapOf(uid)}, is that of ${other.uid}`;
    }
    return undefined;
  }
}
