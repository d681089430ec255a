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
  IMAGE_SOURCE,
  LOGGER,
  PLATFORM,
  PUMP_HOOKS,
  RANDOM,
  RUNNER,
  SEED_SOURCE,
  STATE_STORE,
  SUPERVISOR,
} from '@eitri/core/contracts';
import type {
  BackendPlugin,
  BackendSettings,
  Clock,
  HostFacts,
  ImageSource,
  Logger,
  Platform,
  Random,
  Runner,
  StateStore,
  Supervisor,
  VmUid,
} from '@eitri/core/contracts';
import { GIB, permanent } from '@eitri/core/kit';
import { DEFAULT_POLICY, EventLog, ReconcileEngine } from '@eitri/core/reconcile';
import type { EnginePolicy } from '@eitri/core/reconcile';
import { container as root, instanceCachingFactory } from 'tsyringe';
import type { DependencyContainer, InjectionToken } from 'tsyringe';
import { EnvHttpProxyAgent } from 'undici';
import { CONSOLE_OPTIONS, ConsoleManager } from '../console/index.js';
import { FileDesiredStore } from '../desired/index.js';
import { HostDiskService } from '../disks/index.js';
import { DetachedSupervisor, processTableFor, realSupervisorOptions, SUPERVISOR_OPTIONS } from '../host/index.js';
import { ImageCache } from '../images/index.js';
import { NoCloudSeedSource } from '../seed/index.js';
import { HostKeyStore } from '../state/index.js';
import type { FileStateStore, StatePaths } from '../state/index.js';
import { LatePumpHooks, makeBackendHost } from './backend-host.js';
import type { AgentConfig } from './config.js';

/** What a run starts from. */
export interface Ground {
  readonly config: AgentConfig;
  readonly facts: HostFacts;
  readonly paths: StatePaths;
  readonly store: FileStateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly runner: Runner;
  readonly log: Logger;
  /** The agent's own numeric user. */
  readonly userId: number;
}

export interface Composition {
  readonly platform: Platform;
  readonly engine: ReconcileEngine;
  readonly desired: FileDesiredStore;
  readonly consoles: ConsoleManager;
  readonly supervisor: Supervisor;
  readonly images: ImageSource;
  readonly events: EventLog;
  readonly dispose: () => Promise<void>;
}

/** Composes a run round a loaded backend. Rejects with the backend's own sentence when it can't work here. */
export async function compose(ground: Ground, plugin: BackendPlugin, signal: AbortSignal): Promise<Composition> {
  const container = root.createChildContainer();
  const events = new EventLog(ground.clock);
  registerGround(container, ground, events);
  registerRooms(container, ground);
  const pumpHooks = new LatePumpHooks();
  const platform = await composePlatform(container, ground, plugin, pumpHooks, signal);
  container.register<Platform>(PLATFORM, { useValue: platform });
  container.register(CONSOLE_SOURCE, { useValue: platform.console });
  container.register(CONSOLE_OPTIONS, {
    useValue: { logPathOf: (uid: VmUid) => ground.paths.pathsOf(uid).serialLog },
  });
  const consoles = container.resolve(ConsoleManager);
  container.register(PUMP_HOOKS, { useValue: consoles });
  pumpHooks.connect(consoles);
  return {
    platform,
    consoles,
    engine: container.resolve(ReconcileEngine),
    desired: container.resolve<FileDesiredStore>(DESIRED_STORE),
    supervisor: container.resolve<Supervisor>(SUPERVISOR),
    images: container.resolve<ImageSource>(IMAGE_SOURCE),
    events,
    dispose: async () => {
      await container.dispose();
    },
  };
}

function registerGround(container: DependencyContainer, ground: Ground, events: EventLog): void {
  container.register<Clock>(CLOCK, { useValue: ground.clock });
  container.register<Random>(RANDOM, { useValue: ground.random });
  container.register<Runner>(RUNNER, { useValue: ground.runner });
  container.register<Logger>(LOGGER, { useValue: ground.log });
  container.register<HostFacts>(HOST_FACTS, { useValue: ground.facts });
  container.register(EVENT_SINK, { useValue: events });
  container.register<EnginePolicy>(ENGINE_POLICY, { useValue: policyOf(ground.config) });
}

function registerRooms(container: DependencyContainer, ground: Ground): void {
  const { config, paths, clock, random, runner, log, facts } = ground;
  const once = <T>(token: InjectionToken<T>, make: () => T): void => {
    container.register<T>(token, { useFactory: instanceCachingFactory(make) });
  };
  container.register(SUPERVISOR_OPTIONS, { useValue: realSupervisorOptions(processTableFor(facts, runner)) });
  once<Supervisor>(SUPERVISOR, () => container.resolve(DetachedSupervisor));
  container.register<StateStore>(STATE_STORE, { useValue: ground.store });
  once(DESIRED_STORE, () => new FileDesiredStore(random, log, { path: paths.desired, adopt: config.adopt }));
  once(DISK_SERVICE, () => new HostDiskService(runner, facts, random, { volumesFolder: paths.volumes }));
  once(SEED_SOURCE, () => new NoCloudSeedSource(runner, { hostKeys: new HostKeyStore() }));
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

async function composePlatform(
  container: DependencyContainer,
  ground: Ground,
  plugin: BackendPlugin,
  pumpHooks: LatePumpHooks,
  signal: AbortSignal,
): Promise<Platform> {
  if (plugin.kind !== 'provisioner') throw permanent(`plugin ${plugin.name} is no provisioner`);
  const host = makeBackendHost(container, {
    name: plugin.name,
    settings: backendSettings(ground.config),
    pumpHooks,
    network: undefined,
  });
  const { provisioner, console, publisher } = await plugin.create(host, signal);
  const capabilities = await provisioner.capabilities(signal);
  await provisioner.preflight(signal);
  return {
    backend: plugin.name,
    capabilities,
    provisioner,
    console,
    publisher: capabilities.publishesPorts ? publisher : undefined,
    guestCidr: () => Promise.resolve(undefined),
    hostNetworks: ground.config['host-network'].map(([name]) => name).sort(),
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
});
