/**
 * A network in memory: addresses of 10.77.1.0/24 in the order in which they are asked for, and taps that are only
 * names.
 *
 * It belongs to the host and outlives agents. Knobs are fields; failing or hanging calls are the `CallLog`'s.
 */
import type { Network, Reservation, TapRequest, VmUid } from '@eitri/core/contracts';
import { permanent, retryable, shortHash } from '@eitri/core/kit';
import { CallLog } from './call-log.js';

/** What a `FakeNetwork` is joined to. */
export interface FakeNetworkOptions {
  readonly calls?: CallLog;
  /** Whether a VMM of this VM has its tap open: then `deleteTap` is a violation. Default: none has. */
  readonly inUse?: (uid: VmUid) => boolean;
  /** Told when a tap was taken from under a running VMM. */
  readonly violated?: (sentence: string) => void;
  /** Told when a guest was attached or taken off: when what DHCP answers changes. */
  readonly changed?: (what: 'attached' | 'taken off') => void;
}

/** A `Network` in memory with faults to set. 253 addresses; then `reserveIp` rejects, retryable. */
export class FakeNetwork implements Network {
  readonly calls: CallLog;
  /** Set: nothing can be attached, with this sentence. */
  failing: string | undefined;
  /** Devices that somebody else holds. */
  readonly foreignDevices = new Set<string>();
  /** VMs whose tap won't go. */
  readonly stuckTaps = new Set<VmUid>();
  /** What the site's DHCP server granted. */
  readonly siteLeases = new Map<VmUid, string>();
  /** Named networks that this host serves; undefined: any. */
  served: readonly string[] | undefined;
  private readonly reservations = new Map<VmUid, { readonly mac: string; readonly address: string }>();
  private readonly tapsByVm = new Map<VmUid, readonly string[]>();
  private lastHostPart = 1;

  constructor(private readonly options: FakeNetworkOptions = {}) {
    this.calls = options.calls ?? new CallLog();
  }

  /** All devices of ours. */
  taps(uid?: VmUid): readonly string[] {
    return uid === undefined ? [...this.tapsByVm.values()].flat() : (this.tapsByVm.get(uid) ?? []);
  }

  reservationOf(uid: VmUid): string | undefined {
    return this.reservations.get(uid)?.address;
  }

  /** All reservations, as DHCP answers by them. */
  reserved(): readonly Reservation[] {
    return [...this.reservations].map(([uid, { mac, address }]) => ({ uid, mac, address }));
  }

  /** The host rebooted: devices are gone, reservations (kept in files) are not. */
  reboot(): void {
    this.tapsByVm.clear();
  }

  /** Reservations are gone too, as where an agent starts and has not replayed them yet. */
  forgetReservations(): void {
    this.reservations.clear();
  }

  /** Puts a reservation back, as the composition root does at start from the records. */
  replay(uid: VmUid, mac: string, address: string): void {
    this.reservations.set(uid, { mac, address });
  }

  readonly reserveIp = (uid: VmUid, mac: string, signal: AbortSignal): Promise<string> =>
    this.calls.around('network.reserveIp', uid, () => {
      signal.throwIfAborted();
      this.checkUp();
      const known = this.reservations.get(uid);
      if (known !== undefined) return known.address;
      for (const [other, reserved] of this.reservations) {
        if (reserved.mac === mac) throw permanent(`the MAC ${mac} is that of ${other}`);
      }
      const taken = new Set([...this.reservations.values()].map((r) => r.address));
      for (let tries = 0; tries < 253; tries++) {
        this.lastHostPart = this.lastHostPart >= 254 ? 2 : this.lastHostPart + 1;
        const address = `10.77.1.${this.lastHostPart.toString()}`;
        if (taken.has(address)) continue;
        this.reservations.set(uid, { mac, address });
        return address;
      }
      throw retryable('no address is left in 10.77.1.0/24', { code: 'Capacity' });
    });

  readonly address = (uid: VmUid, signal: AbortSignal): Promise<string | undefined> =>
    this.calls.around('network.address', uid, () => {
      signal.throwIfAborted();
      return this.reservations.get(uid)?.address;
    });

  readonly networkAddress = (uid: VmUid, signal: AbortSignal): Promise<string | undefined> =>
    this.calls.around('network.networkAddress', uid, () => {
      signal.throwIfAborted();
      return this.siteLeases.get(uid);
    });

  readonly createTap = (request: TapRequest, signal: AbortSignal): Promise<void> =>
    this.calls.around('network.createTap', request.uid, () => {
      signal.throwIfAborted();
      this.checkUp();
      const network = request.named?.network;
      if (network !== undefined && this.served?.includes(network) === false) {
        throw permanent(`the network "${network}" is not served by this host`);
      }
      const wanted = [natTap(request.uid), ...(request.named === undefined ? [] : [namedTap(request.uid)])];
      for (const device of wanted) {
        if (this.foreignDevices.has(device)) throw permanent(`device ${device} is not ours`);
      }
      this.tapsByVm.set(request.uid, wanted);
      this.options.changed?.('attached');
    });

  readonly deleteTap = (uid: VmUid, _signal: AbortSignal): Promise<void> =>
    this.calls.around('network.deleteTap', uid, () => {
      // Not skipped for an aborted signal: what would be left is nobody's.
      if (this.stuckTaps.has(uid)) throw retryable(`tap ${natTap(uid)} won't go: device or resource busy`);
      if (this.options.inUse?.(uid) === true) this.options.violated?.(`tap of ${uid} removed while its VMM runs`);
      this.tapsByVm.delete(uid);
      this.reservations.delete(uid);
      this.siteLeases.delete(uid);
      this.options.changed?.('taken off');
    });

  readonly tapName = (uid: VmUid): Promise<string> => Promise.resolve(natTap(uid));
  readonly netTapName = (uid: VmUid): Promise<string> => Promise.resolve(namedTap(uid));

  private checkUp(): void {
    if (this.failing !== undefined) throw retryable(this.failing);
  }
}

const natTap = (uid: VmUid): string => `eit-${shortHash(uid, 8)}`;
const namedTap = (uid: VmUid): string => `ein-${shortHash(uid, 8)}`;
