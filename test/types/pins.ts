/**
 * Every fake is pinned to its contract, and every way to drift from one must fail to compile: `tsc -p test/types` fails
 * when a drift passes, because its @ts-expect-error is then unused. What stands behind each @ts-expect-error is the
 * error's sentence, which test/unit/conformance/pin.test.ts compares with what the compiler says.
 */
import type {
  Expect,
  FakeNetwork,
  FakeProvisioner,
  FakePumpHooks,
  FakeSupervisor,
  ManualClock,
  MemoryDesiredStore,
  MemoryDisks,
  MemoryImages,
  MemorySeeds,
  MemoryStateStore,
  Pin,
} from '@eitri/conformance';
import type {
  Clock,
  ConsoleSource,
  DesiredStore,
  DiskService,
  ImageSource,
  Network,
  Observation,
  ProcessRef,
  ProcessState,
  Provisioner,
  PumpHooks,
  SeedSource,
  StartRequest,
  StateStore,
  Supervisor,
  VmInstance,
  VmUid,
} from '@eitri/core/contracts';
import type { Duplex } from 'node:stream';

// What keeps its contract passes: classes with more members than the contract has, and other names of parameters.
export type Kept = [
  Expect<Pin<Provisioner, FakeProvisioner>>,
  Expect<Pin<Network, FakeNetwork>>,
  Expect<Pin<PumpHooks, FakePumpHooks>>,
  Expect<Pin<Supervisor, FakeSupervisor>>,
  Expect<Pin<Clock, ManualClock>>,
  Expect<Pin<StateStore, MemoryStateStore>>,
  Expect<Pin<DesiredStore, MemoryDesiredStore>>,
  Expect<Pin<DiskService, MemoryDisks>>,
  Expect<Pin<ImageSource, MemoryImages>>,
  Expect<Pin<SeedSource, MemorySeeds>>,
  Expect<Pin<ConsoleSource, { open: (guest: VmUid, until: AbortSignal) => Promise<Duplex>; more: number }>>,
  // Method syntax, async, another class: the shape counts.
  Expect<Pin<PumpHooks, Methods>>,
];

declare class Methods {
  ensure(uid: VmUid): Promise<void>;
  stop(uid: VmUid): Promise<void>;
  extra(): void;
}

/** The contract with some members replaced: what an implementation looks like after a drift. */
type Changed<Contract, Change> = Pin<Contract, Omit<Contract, keyof Change> & Change>;
/** The contract with a member under another name. */
type Renamed<Contract, From extends keyof Contract, To extends string> = Pin<
  Contract,
  Omit<Contract, From> & Record<To, Contract[From]>
>;
interface LocalVm extends VmInstance {
  readonly socket: string;
}
type LabUid = VmUid & { readonly lab: true };

// --- Provisioner

interface Boot<Args extends readonly unknown[], Result = Promise<void>> {
  boot: (...args: Args) => Result;
}
type Certain = Exclude<Observation, { readonly state: 'unknown' }>;
interface ObserveCertain {
  observe: (vm: VmInstance, signal: AbortSignal) => Promise<Certain>;
}

// A dropped AbortSignal.
// @ts-expect-error boot takes 1 parameter where the contract has 2 parameters
export type P1 = Expect<Changed<Provisioner, Boot<[vm: VmInstance]>>>;
// A narrowed parameter; as a method, so that assignability would let it pass.
// @ts-expect-error boot takes a parameter of another type than the contract's
export type P2 = Expect<Changed<Provisioner, { boot(vm: LocalVm, signal: AbortSignal): Promise<void> }>>;
// A renamed member.
// @ts-expect-error destroy is missing
export type P3 = Expect<Renamed<Provisioner, 'destroy', 'remove'>>;
// A synchronous boot.
// @ts-expect-error boot returns no promise where the contract does
export type P4 = Expect<Changed<Provisioner, Boot<[vm: VmInstance, signal: AbortSignal], void>>>;
// An added required parameter.
// @ts-expect-error boot takes 3 parameters where the contract has 2 parameters
export type P5 = Expect<Changed<Provisioner, Boot<[vm: VmInstance, signal: AbortSignal, mode: string]>>>;
// An observe that forgot `unknown`.
// @ts-expect-error observe resolves with another type than the contract's
export type P6 = Expect<Changed<Provisioner, ObserveCertain>>;
// A widened parameter: nothing breaks today, but the contract no longer says what the implementation takes.
// @ts-expect-error boot takes a parameter of another type than the contract's
export type P7 = Expect<Changed<Provisioner, Boot<[vm: VmInstance, signal: AbortSignal | undefined]>>>;
// An optional parameter more.
// @ts-expect-error boot takes optional parameters where the contract has 2 parameters
export type P8 = Expect<Changed<Provisioner, Boot<[vm: VmInstance, signal: AbortSignal, mode?: string]>>>;
// A parameter that anything fits.
// @ts-expect-error boot takes a parameter of another type than the contract's
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- it is what is tried
export type P9 = Expect<Changed<Provisioner, Boot<[vm: any, signal: AbortSignal]>>>;
// A member that may be absent.
// @ts-expect-error address may be absent
export type P10 = Expect<Changed<Provisioner, Partial<Pick<Provisioner, 'address'>>>>;
// Two drifts at once: the first is told.
// @ts-expect-error boot takes 1 parameter where the contract has 2 parameters
export type P11 = Expect<Changed<Provisioner, Boot<[vm: VmInstance]> & ObserveCertain>>;

// --- Network

// @ts-expect-error deleteTap takes 1 parameter where the contract has 2 parameters
export type N1 = Expect<Changed<Network, { deleteTap: (uid: VmUid) => Promise<void> }>>;
// @ts-expect-error deleteTap takes a parameter of another type than the contract's
export type N2 = Expect<Changed<Network, { deleteTap(uid: LabUid, signal: AbortSignal): Promise<void> }>>;
// @ts-expect-error reserveIp is missing
export type N3 = Expect<Renamed<Network, 'reserveIp', 'reserveIP'>>;
// @ts-expect-error tapName returns no promise where the contract does
export type N4 = Expect<Changed<Network, { tapName: (uid: VmUid) => string }>>;
// @ts-expect-error tapName takes 2 parameters where the contract has 1 parameter
export type N5 = Expect<Changed<Network, { tapName: (uid: VmUid, bridge: string) => Promise<string> }>>;
// An address that is always known.
// @ts-expect-error address resolves with another type than the contract's
export type N6 = Expect<Changed<Network, { address: (uid: VmUid, signal: AbortSignal) => Promise<string> }>>;
// @ts-expect-error tapName takes a parameter of another type than the contract's
export type N7 = Expect<Changed<Network, { tapName: (uid: string) => Promise<string> }>>;

// --- PumpHooks

// @ts-expect-error ensure takes 0 parameters where the contract has 1 parameter
export type H1 = Expect<Changed<PumpHooks, { ensure: () => Promise<void> }>>;
// @ts-expect-error ensure takes a parameter of another type than the contract's
export type H2 = Expect<Changed<PumpHooks, { ensure(uid: LabUid): Promise<void> }>>;
// @ts-expect-error stop is missing
export type H3 = Expect<Renamed<PumpHooks, 'stop', 'stopAll'>>;
// @ts-expect-error ensure returns no promise where the contract does
export type H4 = Expect<Changed<PumpHooks, { ensure: (uid: VmUid) => void }>>;
// @ts-expect-error stop takes 2 parameters where the contract has 1 parameter
export type H5 = Expect<Changed<PumpHooks, { stop: (uid: VmUid, drainMs: number) => Promise<void> }>>;
// @ts-expect-error stop resolves with another type than the contract's
export type H6 = Expect<Changed<PumpHooks, { stop: (uid: VmUid) => Promise<boolean> }>>;
// @ts-expect-error stop takes a parameter of another type than the contract's
export type H7 = Expect<Changed<PumpHooks, { stop: (uid: string) => Promise<void> }>>;

// --- ConsoleSource

// @ts-expect-error open takes 1 parameter where the contract has 2 parameters
export type C1 = Expect<Pin<ConsoleSource, { open: (uid: VmUid) => Promise<Duplex> }>>;
// @ts-expect-error open takes a parameter of another type than the contract's
export type C2 = Expect<Pin<ConsoleSource, { open(uid: LabUid, signal: AbortSignal): Promise<Duplex> }>>;
// @ts-expect-error open is missing
export type C3 = Expect<Renamed<ConsoleSource, 'open', 'connect'>>;
// @ts-expect-error open returns no promise where the contract does
export type C4 = Expect<Pin<ConsoleSource, { open: (uid: VmUid, signal: AbortSignal) => Duplex }>>;
// @ts-expect-error open takes 3 parameters where the contract has 2 parameters
export type C5 = Expect<Pin<ConsoleSource, { open: (uid: VmUid, to: AbortSignal, baud: number) => Promise<Duplex> }>>;
// @ts-expect-error open resolves with another type than the contract's
export type C6 = Expect<Pin<ConsoleSource, { open: (uid: VmUid, signal: AbortSignal) => Promise<Duplex | undefined> }>>;
// @ts-expect-error open takes a parameter of another type than the contract's
export type C7 = Expect<Pin<ConsoleSource, { open: (uid: string, signal: AbortSignal) => Promise<Duplex> }>>;

// --- Supervisor

type NiceRequest = StartRequest & { readonly nice: number };
type Started = Promise<{ readonly pid: number }>;
type CertainState = Exclude<ProcessState, { readonly state: 'unknown' }>;
interface SeeCertain {
  observe: (ref: ProcessRef, signal: AbortSignal) => Promise<CertainState>;
}

// @ts-expect-error start takes 1 parameter where the contract has 2 parameters
export type S1 = Expect<Changed<Supervisor, { start: (request: StartRequest) => Started }>>;
// @ts-expect-error start takes a parameter of another type than the contract's
export type S2 = Expect<Changed<Supervisor, { start(request: NiceRequest, signal: AbortSignal): Started }>>;
// @ts-expect-error signal is missing
export type S3 = Expect<Renamed<Supervisor, 'signal', 'kill'>>;
// @ts-expect-error forget returns no promise where the contract does
export type S4 = Expect<Changed<Supervisor, { forget: (ref: ProcessRef) => void }>>;
// @ts-expect-error forget takes 2 parameters where the contract has 1 parameter
export type S5 = Expect<Changed<Supervisor, { forget: (ref: ProcessRef, force: boolean) => Promise<void> }>>;
// @ts-expect-error observe resolves with another type than the contract's
export type S6 = Expect<Changed<Supervisor, SeeCertain>>;
// @ts-expect-error forget takes a parameter of another type than the contract's
export type S7 = Expect<Changed<Supervisor, { forget: (ref: { readonly pidFile: string }) => Promise<void> }>>;
