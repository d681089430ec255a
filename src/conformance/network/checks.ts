/**
 * What the network's cases are written with: steps that most share, and checks that know a tap.
 */
import type { LostReservation, Reservation, TapRequest } from '@eitri/core/contracts';
import { calm, caseMaker, check, same, type FaultCase } from '../checks.js';
import type { NetworkContext, NetworkFaultName, NetworkLife, NetworkVm, ProbedTap } from './context.js';

/** A case of the network's suite, and the knobs that it turns. */
export type NetworkCase<Name extends string = string> = FaultCase<NetworkContext, NetworkFaultName, Name>;

export const networkCase = caseMaker<NetworkContext, NetworkFaultName>();

/** The contract's order, from nothing to DHCP that answers. */
export async function bringUp(
  { hostNetwork }: NetworkLife,
  reservations: readonly (Reservation | LostReservation)[] = [],
): Promise<void> {
  await hostNetwork.verifyNetworks(calm());
  await hostNetwork.checkUplink(calm());
  await hostNetwork.ensureBridge(calm());
  await hostNetwork.replayReservations(reservations, calm());
  await hostNetwork.startDhcp(calm());
}

export interface Attached {
  readonly vm: NetworkVm;
  readonly reservation: Reservation;
  readonly request: TapRequest;
}

/** A guest with its address and its tap, as `boot` makes them. */
export async function attach(context: NetworkContext, life: NetworkLife = context, named = false): Promise<Attached> {
  const vm = context.newVm();
  const { uid, mac } = vm;
  const address = await life.network.reserveIp(uid, mac, calm());
  const request: TapRequest = {
    uid,
    mac,
    address,
    ...(named ? { named: { network: context.named.name, mac: vm.namedMac } } : {}),
  };
  await life.network.createTap(request, calm());
  return { vm, reservation: { uid, mac, address }, request };
}

/** Beside one guest that is attached: reserves every address that is left. */
export async function reserveTheRest(context: NetworkContext): Promise<void> {
  for (let n = 1; n < context.mostGuests; n++) {
    const { uid, mac } = context.newVm();
    await context.network.reserveIp(uid, mac, calm());
  }
}

export async function tapOf(context: NetworkContext, name: string): Promise<ProbedTap | undefined> {
  return (await context.probes.taps()).find((tap) => tap.name === name);
}

/** There is this tap, up, on this bridge. */
export async function tapStands(context: NetworkContext, name: string, bridge: string, when: string): Promise<void> {
  same(await tapOf(context, name), { name, bridge, up: true }, `tap ${name} ${when}`);
}

export async function bridgeName(context: NetworkContext): Promise<string> {
  const bridge = await context.probes.bridge();
  check(bridge !== undefined, "the guests' bridge is not there");
  return bridge.name;
}

/** A client of this MAC is given just this, or nothing. */
export async function leaseIs(
  context: NetworkContext,
  mac: string,
  wanted: string | undefined,
  when: string,
): Promise<void> {
  same(await context.probes.lease(mac), wanted, `lease of ${mac} ${when}`);
}

/** First and last address of `10.77.1.0/24`, as numbers. */
export function boundsOf(cidr: string): { readonly first: number; readonly last: number } {
  const [address = '', prefix = ''] = cidr.split('/');
  const first = addressNumber(address);
  return { first, last: first + 2 ** (32 - Number(prefix)) - 1 };
}

export const addressNumber = (address: string): number =>
  address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
