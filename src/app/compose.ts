/**
 * Puts one run of the agent together: the only place that knows which class stands behind which contract.
 *
 * Each run has a child container of its own, disposed at its end, so that nothing of a former run lives on in the process.
 * Composing touches no guest; `serve` drives what is composed, in its order.
 */
import {
  CLOCK,
  CONSOLE_SOURCE,
  DESIRED_STORE,
  DISK_SERVICE,
  ENGINE_POLICY,
  EVENT_SINK,
  HOST_FACTS,
  HOST_NETWORK,
  IMAGE_SOURCE,
  LOGGER,
  NETWORK,
  PLATFORM,
  PORT_PUBLISHER,
  PROVISIONER,
  PUMP_HOOKS,
  RANDOM,
  RUNNER,
  SEED_SOURCE,
  STATE_STORE,
  SUPERVISOR,
} from '@eitri/core/contracts';
import type {
  BackendSettings,
  Clock,
  HostFacts,
  HostNetwork,
  ImageSource,
  Logger,
  Network,
  NetworkSettings,
  Platform,
  PumpHooks,
  Random,
  Runner,
  StateStore,
  Supervisor,
  VmUid,
} from '@eitri/core/contracts';
import { GIB } from '@eitri/core/kit';
import { DEFAULT_POLICY, ReconcileEngine } from '@eitri/core/reconcile';
import type { EnginePolicy, EventLog } from '@eitri/core/reconcile';
import { container as root, instanceCachingFactory } from 'tsyringe';
import type { DependencyContainer } from 'tsyringe';
import { EnvHttpProxyAgent } from 'undici';
import { CONSOLE_OPTIONS, ConsoleManager } from '../console/index.js';
import type { FileDesiredStore } from '../desired/index.js';
import { HostDiskService } from '../disks/index.js';
import { DetachedSupervisor, processTableFor, realSupervisorOptions, SUPERVISOR_OPTIONS } from '../host/index.js';
import { ImageCache } from '../images/index.js';
import { NoCloudSeedSource } from '../seed/index.js';
import { GuestCidrFile, HostKeyStore } from '../state/index.js';
import type { FileStateStore, StatePaths } from '../state/index.js';
import { LatePumpHooks, makeBackendHost, makeNetworkHost } from './backend-host.js';
import type { AgentConfig } from './config.js';
import type { FoundBackends, NetworkPlugin, ProvisionerPlugin } from './find-backend.js';
import { GuestNetwork, heardLogger, staged } from './guest-network.js';

/**
 * Stands between a port and all who are handed it. Production passes none: it is there so that an agent can be killed at
 * each call of its ports (test/support/kill-sweep.ts).
 */
export type WrapPort = <T extends object>(token: symbol, port: T) => T;

/** What a run starts from. */
export interface Ground {
  readonly config: AgentConfig;
  readonly facts: HostFacts;
  readonly paths: StatePaths;
  readonly store: FileStateStore;
  readonly desired: FileDesiredStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly runner: Runner;
  readonly log: Logger;
  /** The agent's own numeric user. */
  readonly userId: number;
  /** This state directory's own id. */
  readonly stateId: string;
  readonly wrap?: WrapPort | undefined;
}

export interface Composition {
  readonly platform: Platform;
  readonly engine: ReconcileEngine;
  readonly desired: FileDesiredStore;
  readonly consoles: ConsoleManager;
  readonly supervisor: Supervisor;
  readonly images: ImageSource;
  readonly events: EventLog;
  /** Undefined: no network plugin is used. */
  readonly guestNetwork: GuestNetwork | undefined;
  readonly dispose: () => Promise<void>;
}

/** Composes a run round loaded backends. Rejects with a backend's own sentence when it can't work here. */
export async function compose(
  ground: Ground,
  { plugin, network }: Pick<FoundBackends, 'plugin' | 'network'>,
  events: EventLog,
  signal: AbortSignal,
): Promise<Composition> {
  const container = root.createChildContainer();
  registerGround(container, ground, events);
  registerRooms(container, ground);
  const pumpHooks = new LatePumpHooks();
  const guestNetwork =
    network === undefined ? undefined : await composeNetwork(container, { ground, events, pumpHooks }, network, signal);
  const platform = await composePlatform(container, ground, { plugin, pumpHooks, guestNetwork }, signal);
  container.register<Platform>(PLATFORM, { useValue: platform });
  container.register(CONSOLE_SOURCE, { useValue: platform.console });
  container.register(CONSOLE_OPTIONS, {
    useValue: { logPathOf: (uid: VmUid) => ground.paths.pathsOf(uid).serialLog },
  });
  const consoles = container.resolve(ConsoleManager);
  container.register(PUMP_HOOKS, { useValue: consoles });
  pumpHooks.connect(wrapperOf(ground)<PumpHooks>(PUMP_HOOKS, consoles));
  return {
    platform,
    consoles,
    engine: container.resolve(ReconcileEngine),
    desired: container.resolve<FileDesiredStore>(DESIRED_STORE),
    supervisor: container.resolve<Supervisor>(SUPERVISOR),
    images: container.resolve<ImageSource>(IMAGE_SOURCE),
    events,
    guestNetwork,
    dispose: async () => {
      await container.dispose();
    },
  };
}

/** The guests' network alone, for whoever only looks at it. */
export async function composeGuestNetwork(
  ground: Ground,
  plugin: NetworkPlugin,
  events: EventLog,
  signal: AbortSignal,
): Promise<Pick<Composition, 'dispose'> & { readonly guestNetwork: GuestNetwork }> {
  const container = root.createChildContainer();
  registerGround(container, ground, events);
  registerRooms(container, ground);
  const guestNetwork = await composeNetwork(
    container,
    { ground, events, pumpHooks: new LatePumpHooks() },
    plugin,
    signal,
  );
  return {
    guestNetwork,
    dispose: async () => {
      await container.dispose();
    },
  };
}

const wrapperOf = ({ wrap }: Ground): WrapPort => wrap ?? ((_token, port) => port);

function registerGround(container: DependencyContainer, ground: Ground, events: EventLog): void {
  container.register<Clock>(CLOCK, { useValue: ground.clock });
  container.register<Random>(RANDOM, { useValue: ground.random });
  container.register<Runner>(RUNNER, { useValue: wrapperOf(ground)(RUNNER, ground.runner) });
  container.register<Logger>(LOGGER, { useValue: ground.log });
  container.register<HostFacts>(HOST_FACTS, { useValue: ground.facts });
  container.register(EVENT_SINK, { useValue: events });
  container.register<EnginePolicy>(ENGINE_POLICY, { useValue: policyOf(ground.config) });
}

function registerRooms(container: DependencyContainer, ground: Ground): void {
  const { config, paths, clock, random, log, facts } = ground;
  const runner = container.resolve<Runner>(RUNNER);
  const wrap = wrapperOf(ground);
  const once = (token: symbol, make: () => object): void => {
    container.register(token, { useFactory: instanceCachingFactory(() => wrap(token, make())) });
  };
  container.register(SUPERVISOR_OPTIONS, { useValue: realSupervisorOptions(processTableFor(facts, runner)) });
  once(SUPERVISOR, () => container.resolve(DetachedSupervisor));
  container.register<StateStore>(STATE_STORE, { useValue: wrap(STATE_STORE, ground.store) });
  once(DESIRED_STORE, () => ground.desired);
  once(DISK_SERVICE, () => new HostDiskService(runner, facts, random, { volumesFolder: paths.volumes }));
  once(SEED_SOURCE, () => new NoCloudSeedSource(runner, { hostKeys: new HostKeyStore(random) }));
  once(
    IMAGE_SOURCE,
    () =>
      new ImageCache(runner, facts, clock, log, {
        folder: paths.images,
        uid: ground.userId,
        maxBytes: config['image-cache-max-gb'] * GIB,
        dispatcher: new EnvHttpProxyAgent(),
        ...(config['image-dir'] === undefined ? {} : { imageDir: config['image-dir'] }),
      }),
  );
}

async function composeNetwork(
  container: DependencyContainer,
  of: { readonly ground: Ground; readonly events: EventLog; readonly pumpHooks: LatePumpHooks },
  plugin: NetworkPlugin,
  signal: AbortSignal,
): Promise<GuestNetwork> {
  const { ground, events, pumpHooks } = of;
  const { paths, store, clock, log, config } = ground;
  const cidrFile = new GuestCidrFile(paths.guestCidr);
  const settings = networkSettings(ground, await cidrFile.read());
  const host = makeNetworkHost(container, {
    name: plugin.name,
    settings: backendSettings(config),
    pumpHooks,
    logger: heardLogger(log.child({ backend: plugin.name }), events),
    networkSettings: settings,
    recordedUids: store.recordedUids,
  });
  const made = await staged(plugin.name, () => plugin.create(host, signal));
  const wrap = wrapperOf(ground);
  const backend = {
    network: wrap<Network>(NETWORK, made.network),
    hostNetwork: wrap<HostNetwork>(HOST_NETWORK, made.hostNetwork),
  };
  return new GuestNetwork(plugin.name, backend, { clock, log, events, cidrFile, bootId: ground.facts.bootId });
}

function networkSettings({ config, stateId, paths }: Ground, persistedCidr: string | undefined): NetworkSettings {
  return {
    ...(persistedCidr === undefined ? {} : { persistedCidr }),
    ...(config['bridge-cidr'] === '' ? {} : { bridgeCidr: config['bridge-cidr'] }),
    namedNetworks: config['host-network'].map(([name, bridge]) => ({ name, bridge })),
    guestIsolation: config['guest-isolation'],
    stateId,
    runDir: paths.runDir,
  };
}

async function composePlatform(
  container: DependencyContainer,
  ground: Ground,
  of: {
    readonly plugin: ProvisionerPlugin;
    readonly pumpHooks: LatePumpHooks;
    readonly guestNetwork: GuestNetwork | undefined;
  },
  signal: AbortSignal,
): Promise<Platform> {
  const { plugin, pumpHooks, guestNetwork } = of;
  const host = makeBackendHost(container, {
    name: plugin.name,
    settings: backendSettings(ground.config),
    pumpHooks,
    network: guestNetwork?.network,
  });
  const wrap = wrapperOf(ground);
  const { provisioner, console, publisher } = await plugin.create(host, signal);
  const capabilities = await provisioner.capabilities(signal);
  await provisioner.preflight(signal);
  return {
    backend: plugin.name,
    capabilities,
    provisioner: wrap(PROVISIONER, provisioner),
    console: wrap(CONSOLE_SOURCE, console),
    publisher: capabilities.publishesPorts && publisher !== undefined ? wrap(PORT_PUBLISHER, publisher) : undefined,
    guestCidr: () => guestNetwork?.host.guestCidr() ?? Promise.resolve(undefined),
    hostNetworks: (await guestNetwork?.host.hostNetworks()) ?? [],
  };
}

const backendSettings = (config: AgentConfig): BackendSettings => ({
  chBin: config['ch-bin'],
  firmware: config.firmware,
  vfkitBin: config['vfkit-bin'],
  ...(config['qemu-bin'] === undefined ? {} : { qemuBin: config['qemu-bin'] }),
  guestNetwork: config['guest-network'] === 'user' ? 'user' : 'plugin',
});

const policyOf = (config: AgentConfig): EnginePolicy => ({
  ...DEFAULT_POLICY,
  tombstoneGraceMs: config['tombstone-grace'],
  vanishGraceMs: config['vanish-grace'],
  vmTimeoutMs: config['vm-timeout'],
  maxConcurrentCreates: config['max-concurrent-creates'],
  maxVcpus: config['max-vcpus'],
  maxMemoryMib: config['max-mem-mb'],
  maxDiskGib: config['max-disk-gb'],
  memoryReserveMib: config['memory-reserve'],
});
