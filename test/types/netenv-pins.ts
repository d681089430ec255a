/** The Linux network is its contracts, exactly, and so are the fakes that the suite is tried on. */
import type { FakeHostNetwork, FakeNetwork, Expect, Pin } from '@eitri/conformance';
import type { HostNetwork, Network } from '@eitri/core/contracts';
import type { LinuxHostNetwork, LinuxNetwork } from '@eitri/plugin-netenv-linux';

export type LinuxNetworkPinned = Expect<Pin<Network, LinuxNetwork>>;
export type LinuxHostNetworkPinned = Expect<Pin<HostNetwork, LinuxHostNetwork>>;
export type FakeNetworkPinned = Expect<Pin<Network, FakeNetwork>>;
export type FakeHostNetworkPinned = Expect<Pin<HostNetwork, FakeHostNetwork>>;

interface DropsSignal extends Omit<LinuxHostNetwork, 'repair'> {
  readonly repair: () => Promise<readonly string[]>;
}
// @ts-expect-error a repair that can't be aborted is assignable, and no HostNetwork
export type Drifted = Expect<Pin<HostNetwork, DropsSignal>>;

interface Allocates extends Omit<LinuxNetwork, 'address'> {
  readonly address: (...args: Parameters<Network['address']>) => Promise<string>;
}
// @ts-expect-error an address that is always known is one that was allocated by asking
export type Allocating = Expect<Pin<Network, Allocates>>;
