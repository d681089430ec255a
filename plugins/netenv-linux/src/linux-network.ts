/**
 * The network as one VM sees it, on Linux: an address of the guests' subnet, and taps on its bridges.
 *
 * A tap and its reservation come and go together: `createTap` resolves when both are in force, and leaves nothing new
 * where it rejects; `deleteTap` lets the reservation go last, so that what could not be taken back keeps its address.
 *
 * Guests that come or go at once share the looks and the batch of `ip`: the agent stands still while it starts a program,
 * and three of them a guest were most of what it took to start fifty.
 */
import type { Network, TapRequest, VmUid } from '@eitri/core/contracts';
import type { HostWide } from './host-wide.js';
import type { Links } from './links.js';
import { isNatTap, namedTapOf, natTapOf } from './names.js';
import { Gathered, unhurried } from './serial.js';
import { foreignTap, tapLines, tapTrouble, type TapWant } from './taps.js';

/** Of guests that are attached, or detached, by one batch: it has a minute. */
const MOST_TOGETHER = 64;

interface Attachment {
  readonly wanted: readonly TapWant[];
  readonly signal: AbortSignal;
}

export class LinuxNetwork implements Network {
  private readonly attaching: Gathered<Attachment, readonly string[]>;
  private readonly detaching: Gathered<readonly string[], void>;

  constructor(private readonly wide: HostWide) {
    const { devices } = wide;
    this.attaching = new Gathered(devices, MOST_TOGETHER, (attachments) => this.attachAll(attachments));
    this.detaching = new Gathered(devices, MOST_TOGETHER, (names) => this.detachAll(names));
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- nothing to wait for, and a throw must be a rejection
  readonly reserveIp = async (uid: VmUid, mac: string, signal: AbortSignal): Promise<string> => {
    signal.throwIfAborted();
    this.checkReplayed();
    return this.wide.reservations.reserve(uid, mac);
  };

  // eslint-disable-next-line @typescript-eslint/require-await -- as above
  readonly address = async (uid: VmUid, signal: AbortSignal): Promise<string | undefined> => {
    signal.throwIfAborted();
    return this.wide.reservations.of(uid)?.address;
  };

  /** Not known yet: the site's leases are learned by watching the tap, which comes with the second part. */
  readonly networkAddress = (_uid: VmUid, signal: AbortSignal): Promise<string | undefined> => {
    signal.throwIfAborted();
    return Promise.resolve(undefined);
  };

  readonly createTap = async (request: TapRequest, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    this.checkReplayed();
    this.checkReservation(request);
    const wanted = this.wantedTaps(request);
    const made = await this.attaching.run({ wanted, signal });
    try {
      if (this.wide.answering) await this.wide.dhcp.tell();
      signal.throwIfAborted();
    } catch (cause) {
      await this.wide.devices.run(() => this.takeBack(made));
      throw cause;
    }
  };

  readonly deleteTap = async (uid: VmUid, _signal: AbortSignal): Promise<void> => {
    const { wide } = this;
    const names = [natTapOf(uid), namedTapOf(uid)];
    await this.detaching.run(names);
    for (const name of names) wide.namedBridges.delete(name);
    const reservation = wide.reservations.of(uid);
    if (reservation === undefined) return;
    wide.reservations.leave(uid);
    try {
      if (wide.answering) {
        await wide.dhcp.tell();
        await wide.dhcp.release(reservation.mac);
      }
    } catch (cause) {
      wide.reservations.stay(uid);
      throw wide.host.errors.retryable(`take the lease of ${reservation.address} back`, {
        cause,
        code: 'NetworkFailed',
      });
    }
    wide.reservations.forget(uid);
  };

  readonly tapName = (uid: VmUid): Promise<string> => Promise.resolve(natTapOf(uid));
  readonly netTapName = (uid: VmUid): Promise<string> => Promise.resolve(namedTapOf(uid));

  private checkReplayed(): void {
    if (this.wide.replayed) return;
    throw this.wide.host.errors.bug('a guest was attached before the reservations of the records were replayed');
  }

  private checkReservation({ uid, mac, address }: TapRequest): void {
    const { reservations, host } = this.wide;
    const known = reservations.of(uid);
    if (known?.mac === mac && known.address === address) return;
    const is = known === undefined ? 'none is reserved' : `${known.address} is reserved for ${known.mac}`;
    throw host.errors.bug(`attach ${uid} as ${address} with ${mac}: ${is}`);
  }

  private wantedTaps({ uid, named }: TapRequest): readonly TapWant[] {
    const { host } = this.wide;
    const first = this.wide.natWant(natTapOf(uid));
    if (named === undefined) return [first];
    const network = host.networkSettings.namedNetworks.find(({ name }) => name === named.network);
    if (network === undefined) {
      throw host.errors.permanent(
        `the network "${named.network}" is not served by this host: declare it with --host-network ${named.network}=BRIDGE`,
        { code: 'SpecInvalid' },
      );
    }
    return [first, { name: namedTapOf(uid), bridge: network.bridge, isolated: false }];
  }

  /** All together; where that fails, for whatever reason of one of them, each by itself. */
  private async attachAll(
    attachments: readonly Attachment[],
  ): Promise<readonly PromiseSettledResult<readonly string[]>[]> {
    const live = attachments.filter(({ signal }) => !signal.aborted);
    if (live.length > 1) {
      const wanted = new Map(live.flatMap((one) => one.wanted.map((want) => [want.name, want] as const)));
      try {
        // Nobody's own signal: who gives up meanwhile has its taps taken back, and the others theirs.
        const made = await this.ensureTaps([...wanted.values()], unhurried());
        return attachments.map((one) =>
          live.includes(one)
            ? { status: 'fulfilled', value: made.filter((name) => one.wanted.some((want) => want.name === name)) }
            : { status: 'rejected', reason: one.signal.reason as unknown },
        );
      } catch (err) {
        this.wide.host.logger.debug('netenv.taps.apart', { guests: live.length, err });
      }
    }
    return oneByOne(attachments, ({ wanted, signal }) => this.ensureTaps(wanted, signal));
  }

  /** As `attachAll`. */
  private async detachAll(names: readonly (readonly string[])[]): Promise<readonly PromiseSettledResult<void>[]> {
    if (names.length > 1) {
      try {
        await this.removeTaps([...new Set(names.flat())]);
        return names.map(() => ({ status: 'fulfilled', value: undefined }));
      } catch (err) {
        this.wide.host.logger.debug('netenv.taps.apart', { guests: names.length, err });
      }
    }
    return oneByOne(names, (own) => this.removeTaps(own));
  }

  /** Answers the names of those that were not there before. */
  private async ensureTaps(wanted: readonly TapWant[], signal: AbortSignal): Promise<readonly string[]> {
    const { ip, stateId, host, namedBridges } = this.wide;
    const before = await ip.links(signal);
    for (const { name } of wanted) {
      const foreign = foreignTap(before, name, stateId);
      if (foreign !== undefined) throw host.errors.permanent(foreign, { code: 'NetworkFailed' });
    }
    const made = wanted.map(({ name }) => name).filter((name) => !before.has(name));
    try {
      const lines = wanted.flatMap((want) => tapLines(before, want, stateId));
      this.check(lines.length === 0 ? before : await ip.linksAfter(lines, signal), wanted);
    } catch (cause) {
      await this.takeBack(made);
      throw cause;
    }
    for (const { name, bridge } of wanted) if (!isNatTap(name)) namedBridges.set(name, bridge);
    return made;
  }

  /** A tap outside its bridge, and a VMM opens it all the same: seen here, or never. */
  private check(links: Links, wanted: readonly TapWant[]): void {
    for (const want of wanted) {
      const trouble = tapTrouble(links.get(want.name), want);
      if (trouble !== undefined) {
        throw this.wide.host.errors.retryable(`make the tap ${want.name}: ${trouble}`, { code: 'NetworkFailed' });
      }
    }
  }

  /** After a failure, whose reason is the one to tell. */
  private async takeBack(names: readonly string[]): Promise<void> {
    try {
      await this.removeTaps(names);
    } catch (err) {
      this.wide.host.logger.error('netenv.tap.leftBehind', { names, err });
    }
  }

  private async removeTaps(names: readonly string[]): Promise<void> {
    const { ip, stateId, host } = this.wide;
    const links = await ip.links(unhurried());
    const there = names.filter((name) => {
      const foreign = foreignTap(links, name, stateId);
      if (foreign !== undefined) host.logger.warn('netenv.tap.foreign', { device: name, why: foreign });
      return foreign === undefined && links.has(name);
    });
    if (there.length === 0) return;
    const lines = there.map((name) => `link delete dev ${name}`);
    const left = await ip.linksAfter(lines, unhurried());
    const stuck = there.filter((name) => left.has(name));
    if (stuck.length > 0) {
      throw host.errors.retryable(`remove ${stuck.join(' and ')}: still there`, { code: 'NetworkFailed' });
    }
  }
}

async function oneByOne<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<readonly PromiseSettledResult<R>[]> {
  const results: PromiseSettledResult<R>[] = [];
  for (const item of items) results.push(...(await Promise.allSettled([work(item)])));
  return results;
}
