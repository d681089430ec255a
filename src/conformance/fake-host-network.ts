/**
 * The host's side of a network, in memory: a bridge, rules, a DHCP server that answers as a real one would, and the taps
 * of a `FakeNetwork`.
 *
 * `FakeNetHost` is the host and outlives agents; a `FakeHostNetwork` is one agent's hand on it. A restart of the agent is
 * a new one, after `forgetReservations`: what the records do not replay is not known any more.
 */
import type { HostNetwork, LostReservation, NetworkFinding, Reservation } from '@eitri/core/contracts';
import { permanent, retryable, shortHash } from '@eitri/core/kit';
import { CallLog } from './call-log.js';
import { FakeNetwork } from './fake-network.js';

/** Device name of the fake guests' bridge. */
export const FAKE_BRIDGE = 'eitri0';

/** A host's network in memory: what is there whether or not an agent runs. */
export class FakeNetHost {
  readonly calls = new CallLog();
  readonly network = new FakeNetwork({
    calls: this.calls,
    changed: (what) => {
      this.tellServer();
      if (what === 'taken off') this.forgetLeases();
    },
  });
  /** Bridges, ours and the operator's; whether ours is a stranger's. */
  readonly bridges = new Map<string, { readonly mac: string; readonly foreign: boolean }>();
  /** How often the guests' subnet is masqueraded; more than once is a mistake. */
  rules = 0;
  /** Taps that somebody took off their bridge. */
  readonly detached = new Set<string>();
  /** What the DHCP server answers, by MAC; undefined: none runs. */
  answers: Map<string, string> | undefined;
  servers = 0;
  /** Leases given, by address. */
  readonly leases = new Map<string, string>();
  /** A route of the host that overlaps the guests' subnet. */
  overlap: string | undefined;
  /** Whether some life has a record. */
  haveGuests = false;

  /** Has the server know the reservations of now, where one runs. */
  tellServer(): void {
    if (this.answers === undefined) return;
    this.answers = new Map(this.network.reserved().map(({ mac, address }) => [mac, address]));
  }

  /** What a client on the bridge is given. An address that is leased to somebody else is given to nobody. */
  lease(mac: string): string | undefined {
    const address = this.bridges.has(FAKE_BRIDGE) ? this.answers?.get(mac) : undefined;
    if (address === undefined) return undefined;
    const holder = this.leases.get(address);
    if (holder !== undefined && holder !== mac) return undefined;
    this.leases.set(address, mac);
    return address;
  }

  /** Leases that are no guest's any more are given back. */
  private forgetLeases(): void {
    const reserved = this.network.reserved();
    for (const [address, mac] of this.leases) {
      if (!reserved.some((one) => one.mac === mac && one.address === address)) this.leases.delete(address);
    }
  }
}

/** What the fake host serves beside its own bridge. */
export interface FakeHostNetworkOptions {
  /** Name and bridge. */
  readonly namedNetworks?: readonly (readonly [string, string])[];
}

/** The host's side of a network, in memory, over a `FakeNetHost` that outlives it. */
export class FakeHostNetwork implements HostNetwork {
  private answering = false;

  constructor(
    private readonly host: FakeNetHost,
    private readonly options: FakeHostNetworkOptions = {},
  ) {}

  readonly verifyNetworks = (signal: AbortSignal): Promise<void> =>
    this.call('verifyNetworks', signal, () => {
      for (const [name, bridge] of this.options.namedNetworks ?? []) {
        if (!this.host.bridges.has(bridge)) throw permanent(`--host-network ${name}=${bridge}: there is no ${bridge}`);
      }
    });

  readonly checkUplink = (signal: AbortSignal): Promise<void> =>
    this.call('checkUplink', signal, () => {
      if (this.host.overlap !== undefined && !this.host.haveGuests)
        throw permanent(`10.77.1.0/24 overlaps ${this.host.overlap}`);
    });

  readonly ensureBridge = (signal: AbortSignal): Promise<void> =>
    this.call('ensureBridge', signal, () => void this.mendBridge());

  readonly replayReservations = (
    reservations: readonly (Reservation | LostReservation)[],
    signal: AbortSignal,
  ): Promise<void> =>
    this.call('replayReservations', signal, () => {
      const whole = reservations.flatMap((one) => ('address' in one ? [one] : []));
      const found = reservations.flatMap((one) => {
        const address = 'address' in one ? undefined : this.host.answers?.get(one.mac);
        return address === undefined ? [] : [{ ...one, address }];
      });
      for (const { uid, mac, address } of [...whole, ...found]) {
        const taken = this.host.network.reserved().some((one) => one.address === address && one.uid !== uid);
        if (address.startsWith('10.77.1.') && !taken) this.host.network.replay(uid, mac, address);
      }
    });

  readonly startDhcp = (signal: AbortSignal): Promise<void> =>
    this.call('startDhcp', signal, () => {
      if (!this.host.bridges.has(FAKE_BRIDGE)) throw retryable(`there is no ${FAKE_BRIDGE}`);
      this.answering = true;
      this.startServer();
    });

  readonly guestCidr = (): Promise<string> => Promise.resolve('10.77.1.0/24');

  readonly hostNetworks = (): Promise<readonly string[]> =>
    Promise.resolve((this.options.namedNetworks ?? []).map(([name]) => name).sort());

  readonly repair = (signal: AbortSignal): Promise<readonly string[]> =>
    this.call('repair', signal, () => {
      const mended = this.mendBridge();
      for (const tap of this.host.detached) mended.push(`${tap} is on its bridge again`);
      this.host.detached.clear();
      if (this.answering && this.host.servers === 0) {
        this.startServer();
        mended.push('dhcp answers again');
      }
      return mended;
    });

  readonly examine = (signal: AbortSignal): Promise<readonly NetworkFinding[]> =>
    this.call('examine', signal, () => [
      this.host.bridges.has(FAKE_BRIDGE)
        ? { what: 'bridge', level: 'ok', detail: `${FAKE_BRIDGE} stands` }
        : { what: 'bridge', level: 'ok', detail: `${FAKE_BRIDGE} is made at the start` },
      this.host.overlap === undefined
        ? { what: 'overlap', level: 'ok', detail: 'none' }
        : { what: 'overlap', level: 'fail', detail: `10.77.1.0/24 overlaps ${this.host.overlap}` },
    ]);

  readonly teardown = (_signal: AbortSignal): Promise<void> =>
    this.call('teardown', new AbortController().signal, () => {
      this.answering = false;
      this.host.servers = 0;
      this.host.answers = undefined;
      this.host.leases.clear();
      this.host.rules = 0;
      this.host.network.reboot();
      if (this.host.bridges.get(FAKE_BRIDGE)?.foreign === false) this.host.bridges.delete(FAKE_BRIDGE);
    });

  readonly close = (): Promise<void> => Promise.resolve();

  private mendBridge(): string[] {
    const mended: string[] = [];
    const bridge = this.host.bridges.get(FAKE_BRIDGE);
    if (bridge?.foreign === true) throw permanent(`${FAKE_BRIDGE} is not ours`);
    if (bridge === undefined) {
      this.host.bridges.set(FAKE_BRIDGE, { mac: '02:00:00:00:00:01', foreign: false });
      mended.push(`${FAKE_BRIDGE} is there again`);
    }
    if (this.host.rules !== 1) {
      this.host.rules = 1;
      mended.push('the rules are there again');
    }
    return mended;
  }

  /** Or takes over the one that runs. */
  private startServer(): void {
    this.host.servers = 1;
    this.host.answers ??= new Map();
    this.host.tellServer();
  }

  private call<T>(member: keyof HostNetwork, signal: AbortSignal, work: () => T): Promise<T> {
    return this.host.calls.around(`hostNetwork.${member}`, undefined, () => {
      signal.throwIfAborted();
      return work();
    });
  }
}

/** A MAC for a bridge that an operator made. */
export const someMac = (name: string): string => `02:${(shortHash(name, 10).match(/../g) ?? []).join(':')}`;
