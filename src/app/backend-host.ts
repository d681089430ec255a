/**
 * All that a backend is handed. The container is no part of it: from a child one leads to everything in its parents.
 */
import {
  CLOCK,
  CONTRACT_VERSION,
  DISK_SERVICE,
  HOST_FACTS,
  LOGGER,
  RANDOM,
  RUNNER,
  STATE_STORE,
  SUPERVISOR,
} from '@eitri/core/contracts';
import type {
  BackendHost,
  BackendSettings,
  Clock,
  DiskService,
  HostFacts,
  Logger,
  Network,
  NetworkHost,
  NetworkSettings,
  PumpHooks,
  Random,
  Runner,
  StateStore,
  Supervisor,
  VmUid,
} from '@eitri/core/contracts';
import { bug, errorFactory } from '@eitri/core/kit';
import type { DependencyContainer } from 'tsyringe';

/** The host's services for one backend, out of the run's container. */
export function makeBackendHost(
  container: DependencyContainer,
  of: {
    readonly name: string;
    readonly settings: BackendSettings;
    readonly pumpHooks: PumpHooks;
    readonly network: Network | undefined;
  },
): BackendHost {
  const state = container.resolve<StateStore>(STATE_STORE);
  return Object.freeze({
    contract: CONTRACT_VERSION,
    facts: container.resolve<HostFacts>(HOST_FACTS),
    settings: of.settings,
    logger: container.resolve<Logger>(LOGGER).child({ backend: of.name }),
    runner: container.resolve<Runner>(RUNNER),
    clock: container.resolve<Clock>(CLOCK),
    random: container.resolve<Random>(RANDOM),
    supervisor: container.resolve<Supervisor>(SUPERVISOR),
    disks: container.resolve<DiskService>(DISK_SERVICE),
    pumpHooks: of.pumpHooks,
    errors: errorFactory,
    vmPaths: (uid: VmUid) => Promise.resolve(state.pathsOf(uid)),
    network: of.network,
  });
}

/** The same, and what only a network plugin is told. */
export function makeNetworkHost(
  container: DependencyContainer,
  of: {
    readonly name: string;
    readonly settings: BackendSettings;
    readonly pumpHooks: PumpHooks;
    readonly logger: Logger;
    readonly networkSettings: NetworkSettings;
    readonly recordedUids: NetworkHost['recordedUids'];
  },
): NetworkHost {
  const { logger, networkSettings, recordedUids } = of;
  const host = makeBackendHost(container, { ...of, network: undefined });
  return Object.freeze({ ...host, logger, networkSettings, recordedUids });
}

/**
 * Hooks that are there before the pumps are: a backend takes them when it is made, and the pumps need the console that
 * only the made backend has.
 */
export class LatePumpHooks implements PumpHooks {
  private hooks: PumpHooks | undefined;

  /** Once, before the first guest is touched. */
  connect(hooks: PumpHooks): void {
    this.hooks = hooks;
  }

  readonly ensure = (uid: VmUid): Promise<void> => this.connected().ensure(uid);
  readonly stop = (uid: VmUid): Promise<void> => this.connected().stop(uid);

  private connected(): PumpHooks {
    if (this.hooks === undefined) throw bug('a backend drove a pump before the console was composed');
    return this.hooks;
  }
}
