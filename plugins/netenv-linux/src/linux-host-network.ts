/**
 * The host's side of the guests' network: bridge, rules, DHCP and DNS, put up in the contract's order, kept true, taken
 * down only on request.
 *
 * `ensureBridge` and `repair` do the same work: what is not as it should be is made so, and told. What a guest has open
 * (a tap) is never replaced.
 */
import type { ErrorFactory, HostNetwork, LostReservation, NetworkFinding, Reservation } from '@eitri/core/contracts';
import { bridgeFix, foreignBridge, isOurs } from './bridge.js';
import { examine } from './examine.js';
import type { HostWide } from './host-wide.js';
import { ensureKernelSettings } from './kernel-settings.js';
import type { Links } from './links.js';
import { BRIDGE } from './names.js';
import { collisions, describeRoute } from './routes.js';
import { unhurried } from './serial.js';
import { halfMade, orphans, ourTaps, tapLines, tapTrouble } from './taps.js';

export class LinuxHostNetwork implements HostNetwork {
  constructor(private readonly wide: HostWide) {}

  readonly verifyNetworks = async (signal: AbortSignal): Promise<void> => {
    const { ip, host } = this.wide;
    const { namedNetworks } = host.networkSettings;
    if (namedNetworks.length === 0) return;
    const links = await ip.links(signal);
    const troubles = namedNetworks.flatMap(({ name, bridge }) => {
      const flag = `--host-network ${name}=${bridge}`;
      const link = links.get(bridge);
      if (bridge === BRIDGE) return [`${flag}: ${bridge} is the bridge of every guest's first network: name another`];
      if (link === undefined)
        return [`${flag}: there is no device ${bridge}: make the bridge first, or remove the flag`];
      return link.kind === 'bridge' ? [] : [`${flag}: ${bridge} is no bridge: make one, or remove the flag`];
    });
    if (troubles.length > 0) throw host.errors.permanent(troubles.join('; '));
  };

  readonly checkUplink = async (signal: AbortSignal): Promise<void> => {
    const { ip, host, cidr, subnet } = this.wide;
    const found = collisions(cidr, BRIDGE, await ip.routes(signal));
    if (found.length === 0) return;
    const routes = [...new Set(found.map(describeRoute))].join(', ');
    const what = `the guest subnet ${subnet} overlaps what this host reaches elsewhere: ${routes}`;
    if (await this.haveGuests(signal)) {
      // To refuse would leave running guests without DHCP; their subnet can't be changed under them.
      host.logger.error('netenv.uplink.overlap', {
        why: what,
        next: 'destroy or move the guests, then choose another --bridge-cidr',
      });
      return;
    }
    throw host.errors.permanent(`${what}; choose another with --bridge-cidr`);
  };

  readonly ensureBridge = async (signal: AbortSignal): Promise<void> => {
    const { devices, dhcp, host, ip, stateId } = this.wide;
    // Another agent's first: its DHCP server is only what is noticed of it, and is not to be ended.
    const foreign = foreignBridge(await ip.links(signal), stateId);
    if (foreign !== undefined) throw host.errors.permanent(foreign, { code: 'NetworkFailed' });
    // Also what would stop `startDhcp`: a start that is refused leaves no bridge behind.
    await dhcp.check(signal);
    await devices.run(() => this.mendBridge(host.errors.permanent, signal));
  };

  readonly replayReservations = async (
    reservations: readonly (Reservation | LostReservation)[],
    signal: AbortSignal,
  ): Promise<void> => {
    signal.throwIfAborted();
    const { reservations: known, host } = this.wide;
    // Read before `startDhcp` writes it anew. Last, so that what is guessed takes no place that a record knows.
    for (const reservation of [...reservations.filter(isWhole), ...(await this.found(reservations))]) {
      const trouble = known.replay(reservation);
      // One that can't be served must not take the others' addresses from them.
      if (trouble !== undefined) host.logger.error('netenv.reservation.refused', { ...reservation, why: trouble });
    }
    this.wide.replayed = true;
  };

  readonly startDhcp = async (signal: AbortSignal): Promise<void> => {
    const { wide } = this;
    if (!wide.replayed) throw wide.host.errors.bug('DHCP was to answer before the reservations were replayed');
    const outcome = await wide.dhcp.start(await this.bridgeIndex(signal), signal);
    wide.answering = true;
    wide.host.logger.info('netenv.dhcp.answers', { outcome, subnet: wide.subnet });
  };

  readonly guestCidr = (): Promise<string> => Promise.resolve(this.wide.subnet);

  readonly hostNetworks = (): Promise<readonly string[]> =>
    Promise.resolve(this.wide.host.networkSettings.namedNetworks.map(({ name }) => name).sort());

  readonly repair = async (signal: AbortSignal): Promise<readonly string[]> => {
    const { wide } = this;
    const mended = await wide.devices.run(async () => [
      // A stranger's bridge may go again, and guests wait for ours: tried at each repair.
      ...(await this.mendBridge(wide.host.errors.retryable, signal)),
      ...(await this.mendTaps(signal)),
      ...(await this.sweep(signal)),
    ]);
    return [...mended, ...(await this.mendDhcp(signal))];
  };

  readonly examine = (signal: AbortSignal): Promise<readonly NetworkFinding[]> => examine(this.wide, signal);

  readonly teardown = async (_signal: AbortSignal): Promise<void> => {
    const { wide } = this;
    wide.answering = false;
    await wide.dhcp.remove();
    await wide.devices.run(async () => {
      const { ip, stateId } = wide;
      const links = await ip.links(unhurried());
      const taps = [...ourTaps(links, stateId), ...halfMade(links, stateId)].map(({ name }) => name);
      // A stranger's bridge has a stranger's rules: another agent's table has the same name.
      const foreign = foreignBridge(links, stateId) !== undefined;
      const devices = links.has(BRIDGE) && !foreign ? [...taps, BRIDGE] : taps;
      await ip.batch(
        devices.map((name) => `link delete dev ${name}`),
        unhurried(),
      );
      if (!foreign) await wide.nft.remove(unhurried());
    });
  };

  /** Nothing is held between calls: devices, rules and server stand by themselves. */
  readonly close = (): Promise<void> => Promise.resolve();

  private async mendBridge(refusal: ErrorFactory['permanent'], signal: AbortSignal): Promise<readonly string[]> {
    const { ip, nft, host, stateId, bridge } = this.wide;
    const links = await ip.links(signal);
    const foreign = foreignBridge(links, stateId);
    if (foreign !== undefined) throw refusal(foreign, { code: 'NetworkFailed' });
    const addresses = links.has(BRIDGE) ? await ip.addresses(BRIDGE, signal) : [];
    // RULES FIRST: nothing is forwarded that they don't cover.
    const rules = (await nft.ensure(signal))
      ? ['the rules of the guests were gone or changed and are in force again']
      : [];
    const { lines, mended } = bridgeFix(links, addresses, bridge);
    await ip.batch(lines, signal);
    const settings = await ensureKernelSettings(host, BRIDGE, signal);
    return [...rules, ...mended, ...settings];
  }

  private async mendTaps(signal: AbortSignal): Promise<readonly string[]> {
    const { ip, stateId, namedBridges } = this.wide;
    const links = await ip.links(signal);
    const lines: string[] = [];
    const mended: string[] = [];
    for (const link of ourTaps(links, stateId)) {
      const want = this.wide.wantOf(link);
      if (want === undefined || !links.has(want.bridge)) continue;
      if (want.bridge !== BRIDGE) namedBridges.set(want.name, want.bridge);
      const trouble = tapTrouble(link, want);
      if (trouble === undefined) continue;
      lines.push(...tapLines(links, want, stateId));
      mended.push(`${trouble}: put right`);
    }
    await ip.batch(lines, signal);
    return mended;
  }

  /** Devices are listed before the records: a tap that is in the list had its record by then. */
  private async sweep(signal: AbortSignal): Promise<readonly string[]> {
    const { ip, stateId, host } = this.wide;
    const links = await ip.links(signal);
    const uids = await this.recorded(signal);
    if (uids === undefined) return [];
    const swept = [...orphans(links, stateId, uids), ...halfMade(links, stateId)].map(({ name }) => name);
    await ip.batch(
      swept.map((name) => `link delete dev ${name}`),
      signal,
    );
    if (swept.length > 0) host.logger.warn('netenv.taps.swept', { devices: swept });
    return swept.map((name) => `${name} belonged to no VM and is gone`);
  }

  private async mendDhcp(signal: AbortSignal): Promise<readonly string[]> {
    const { wide } = this;
    if (!wide.answering) return [];
    const mended: string[] = [];
    const index = await this.bridgeIndex(signal);
    if (!(await wide.dhcp.isTrue(index, signal))) {
      const outcome = await wide.dhcp.start(index, signal);
      mended.push(outcome === 'taken over' ? 'dnsmasq knows the reservations again' : `dnsmasq was ${outcome}`);
    }
    const macs = new Set(wide.reservations.served().map(({ mac }) => mac));
    for (const { mac, address } of await wide.dhcp.leases()) {
      if (macs.has(mac)) continue;
      await wide.dhcp.release(mac);
      mended.push(`the lease of ${address} to ${mac}, which is no guest's, was taken back`);
    }
    return mended;
  }

  /** The addresses that a former agent had DHCP answer, of those whose records tell none. */
  private async found(reservations: readonly (Reservation | LostReservation)[]): Promise<readonly Reservation[]> {
    const lost = reservations.filter((one) => !isWhole(one));
    if (lost.length === 0) return [];
    const formerly = await this.wide.dhcp.formerly();
    return lost.flatMap((one) => {
      const address = formerly.get(one.mac);
      if (address !== undefined) return [{ ...one, address }];
      const why = `the address of ${one.uid} is not known: its record does not tell it, and no DHCP server of ours served it`;
      this.wide.host.logger.warn('netenv.reservation.lost', { ...one, why });
      return [];
    });
  }

  private async bridgeIndex(signal: AbortSignal): Promise<number> {
    const { ip, host, stateId } = this.wide;
    const link = this.ours(await ip.links(signal));
    if (link === undefined)
      throw host.errors.retryable(`there is no ${BRIDGE} of ${stateId}`, { code: 'NetworkFailed' });
    return link.index;
  }

  private ours(links: Links): ReturnType<Links['get']> {
    const link = links.get(BRIDGE);
    return isOurs(link, this.wide.stateId) ? link : undefined;
  }

  private async haveGuests(signal: AbortSignal): Promise<boolean> {
    const uids = await this.recorded(signal);
    // What can't be told is not denied: a host with guests must start.
    return uids === undefined || uids.size > 0;
  }

  private async recorded(signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
    try {
      return await this.wide.host.recordedUids(signal);
    } catch (err) {
      signal.throwIfAborted();
      this.wide.host.logger.warn('netenv.records.unreadable', { err });
      return undefined;
    }
  }
}

const isWhole = (one: Reservation | LostReservation): one is Reservation => 'address' in one;
