/**
 * One run of the agent, from its configuration to its end.
 *
 *   sockets fit → one agent a state directory and a run directory → state is readable → folder of manifests may be heard
 *     → backends chosen, loaded, checked, pinned → guests' network up, with the addresses of all records
 *     → consoles of running guests → engine → operator API → control plane … until a signal
 *     → control plane first, so that no report tells of an agent that ends → API → engine rests → consoles let go
 *
 * Guests are not touched by the end: they run on, and the next start finds them. The order is load-bearing: whatever can
 * refuse the start does so before a guest, a disk or a port is touched.
 */
import { basename, dirname, resolve } from 'node:path';
import type { Clock, ControlPlane, HostFacts, Logger, VmRecord } from '@eitri/core/contracts';
import { detach, errorLine, isVmUid, type ExitCode, exitError, withExitCode, EXIT } from '@eitri/core/kit';
import { EventLog, instanceOf, isAlive } from '@eitri/core/reconcile';
import type { ReconcileEngine } from '@eitri/core/reconcile';
import { checkSockets } from '../admin/index.js';
import type { PluginRoot } from '../backends/index.js';
import { checkFolder, LocalControlPlane } from '../control/local/index.js';
import { FileDesiredStore } from '../desired/index.js';
import {
  diskFiles,
  ExecaRunner,
  readHostFacts,
  readMachineId,
  realHostSources,
  rotateVmmLog,
  SystemClock,
  SystemRandom,
} from '../host/index.js';
import {
  checkSocketRoom,
  ControlFile,
  FileStateStore,
  FolderLock,
  GuestCidrFile,
  makeLockedFolder,
  resolveFolders,
  StatePaths,
} from '../state/index.js';
import type { LockedFolder } from '../state/index.js';
import { compose } from './compose.js';
import type { Composition, Ground, WrapPort } from './compose.js';
import { checkMemoryReserve } from './config.js';
import type { AgentConfig } from './config.js';
import { makeControlPlaneHost } from './control-plane-host.js';
import { findBackends } from './find-backend.js';
import type { FoundBackends } from './find-backend.js';
import { GuestNetworkError, recordsOf } from './guest-network.js';
import type { GuestNetwork } from './guest-network.js';
import { tearDown } from './network-teardown.js';
import { checkMachine } from './machine-binding.js';
import { startOperatorApi } from './operator-api.js';

/** How long passes are waited for at the end; a pass that hangs longer is left to the next start. */
const QUIESCE_MS = 5_000;
const CONSOLES_MS = 3_000;
const API_MS = 2_000;
const VMM_LOG_MS = 60_000;
const TEARDOWN_MS = 30_000;

export interface ServeOptions {
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly version: string;
  /** Plugins that oclif knows. */
  readonly installed: readonly PluginRoot[];
  /** Given each run's events, to show them. Answers the undoing. */
  readonly onEvents?: (events: EventLog) => () => void;
  /** For tests; see `WrapPort`. */
  readonly wrap?: WrapPort;
  /** Ends the run in good order when it is aborted. */
  readonly signal: AbortSignal;
}

/** Runs until the signal is aborted. Rejects, with an exit code, when the agent can't start. */
export async function serve(config: AgentConfig, options: ServeOptions): Promise<void> {
  const undo: (() => Promise<void> | void)[] = [];
  try {
    await run(config, options, undo);
  } finally {
    for (const step of undo.reverse()) {
      try {
        await step();
      } catch (err) {
        options.log.error('agent.end.step.failed', { err });
      }
    }
  }
}

async function run(config: AgentConfig, options: ServeOptions, undo: (() => Promise<void> | void)[]): Promise<void> {
  const { log, signal } = options;
  for (const warning of config.warnings) log.warn('config.warning', { warning });
  if (config.local === undefined) {
    throw exitError(
      EXIT.usage,
      'this host is not joined to a control plane: take VMs from a folder with "eitri-agent run --local DIR" (make the folder with "eitri-agent local init DIR")',
    );
  }
  const runner = new ExecaRunner();
  const facts = await coded(EXIT.badConfiguration, () => readHostFacts(realHostSources(runner), signal));
  checkMemoryReserve(config, facts);
  const folders = resolveFolders(
    { facts, home: options.home, xdgRuntimeDir: options.env['XDG_RUNTIME_DIR'] },
    {
      ...(config['state-dir'] === undefined ? {} : { stateDir: config['state-dir'] }),
      ...(config['run-dir'] === undefined ? {} : { runDir: config['run-dir'] }),
    },
  );
  await coded(EXIT.badConfiguration, () => checkSocketRoom(folders.runDir, facts.os));
  const paths = new StatePaths(folders);
  const store = new FileStateStore(paths, log, diskFiles);
  await takeFolder(paths.lock, { kind: 'state', path: paths.stateDir }, undo);
  await takeFolder(paths.runLock, { kind: 'run', path: paths.runDir }, undo);
  await coded(EXIT.cantWriteState, () => checkSockets(paths.runDir));
  await coded(EXIT.cantWriteState, () => store.prepare());

  const random = new SystemRandom();
  const desired = new FileDesiredStore(random, log, diskFiles, { path: paths.desired, adopt: config.adopt });
  const folder = resolve(config.local);
  await coded(EXIT.badInput, async () => {
    await desired.load();
    await takeUpRecords(desired, { config, paths, store }, signal);
    await checkFolder(folder, desired);
  });
  const controlFile = new ControlFile(paths.control, random);
  const control = await coded(EXIT.badInput, () => controlFile.read());
  const machineId = await readMachineId(realHostSources(runner), signal);
  checkMachine({ stateDir: paths.stateDir, recorded: control?.machineId, machineId, adopt: config.adopt });
  const found = await findBackends({ installed: options.installed, facts, control, paths, config });
  const userId = process.getuid?.() ?? 0;
  const clock = new SystemClock();
  const { wrap } = options;
  // Devices bear it, so it is on disk before the first of them is made.
  const stateId = control?.stateId ?? random.uuid();
  const ground: Ground = { config, facts, paths, store, desired, clock, random, runner, log, userId, stateId, wrap };
  const events = new EventLog(clock);
  if (options.onEvents !== undefined) undo.push(options.onEvents(events));
  const composition = await coded(EXIT.badConfiguration, () => composeChecked(ground, found, events, signal));
  undo.push(composition.dispose);
  const { platform, guestNetwork } = composition;
  await guestNetwork?.check(signal);
  log.info('backend.chosen', {
    backend: found.plugin.name,
    because: found.because,
    vmm: platform.capabilities.vmmVersion,
    ...(guestNetwork === undefined ? {} : { network: guestNetwork.name, guestCidr: await platform.guestCidr() }),
  });
  await coded(EXIT.cantWriteState, () =>
    controlFile.update((state) => {
      const { network: _former, ...kept } = state;
      const network = found.networkPin === undefined ? {} : { network: found.networkPin };
      const machine = machineId === undefined ? {} : { machineId };
      return { ...kept, stateId, ...machine, backend: found.plugin.name, ...network };
    }),
  );
  await composition.images.sweep(signal);
  if (guestNetwork !== undefined) await raise(guestNetwork, { ground, composition, undo }, signal);
  await drive(ground, composition, localControl(folder, ground, composition), options, undo);
}

/** From here on guests can be attached; kept true until the end, at which it stays unless it was asked to go. */
async function raise(
  network: GuestNetwork,
  of: { readonly ground: Ground; readonly composition: Composition; readonly undo: (() => Promise<void> | void)[] },
  signal: AbortSignal,
): Promise<void> {
  const { ground, composition, undo } = of;
  const loaded = await coded(EXIT.badConfiguration, () => ground.store.loadRecords(signal));
  await network.raise(loaded, signal);
  undo.push(() => network.close());
  if (ground.config.teardown) {
    const cidrFile = new GuestCidrFile(ground.paths.guestCidr);
    undo.push(async () => {
      const { platform, events } = composition;
      try {
        // The run's own signal is aborted by now.
        await tearDown({ network, platform, store: ground.store, cidrFile }, AbortSignal.timeout(TEARDOWN_MS));
        ground.log.info('network.down');
      } catch (err) {
        ground.log.warn('network.kept', { err });
        events.emit({ type: 'network.kept', level: 'warn', message: errorLine(err) });
      }
    });
  }
  detach(network.keep(signal), ground.log, 'network.keeper.failed');
}

/**
 * Records without a desired state mean that it was lost, not that nobody wants them: a start that went on would make new
 * VMs beside the old ones under the same names. The operator may say that the names still mean the same lives.
 */
async function takeUpRecords(
  desired: FileDesiredStore,
  { config, paths, store }: Pick<Ground, 'config' | 'paths' | 'store'>,
  signal: AbortSignal,
): Promise<void> {
  if (desired.current() !== undefined) return;
  const loaded = await store.loadRecords(signal);
  if (loaded.length === 0) return;
  if (!config.adopt) {
    throw exitError(
      EXIT.badInput,
      `${paths.desired} is missing, though VMs are recorded (${loaded.length}): put a copy of it back, or start once with --adopt to take the recorded VMs for those that are declared under their names`,
    );
  }
  desired.inherit(recordsOf(loaded));
}

/** Makes a folder, and is its only agent from now to the end of the run. */
async function takeFolder(path: string, folder: LockedFolder, undo: (() => void)[]): Promise<void> {
  await coded(EXIT.cantWriteState, () => makeLockedFolder(folder));
  const lock = await coded(EXIT.tryAgain, () => FolderLock.acquire(path, folder, process.pid));
  undo.push(() => lock.release());
}

async function composeChecked(
  ground: Ground,
  found: FoundBackends,
  events: EventLog,
  signal: AbortSignal,
): Promise<Composition> {
  try {
    return await compose(ground, found, events, signal);
  } catch (cause) {
    if (cause instanceof GuestNetworkError) throw cause;
    throw new Error(`backend ${found.plugin.name} can't be used`, { cause });
  }
}

function localControl(folder: string, ground: Ground, { desired, events }: Composition): LocalControlPlane {
  const imageDir = ground.config['image-dir'];
  const imageFolders = imageDir === undefined ? [] : [imageDir];
  const options = { folder, agentUid: ground.userId, imageFolders };
  return new LocalControlPlane(desired, ground.clock, ground.log, events, options);
}

/** Everything is composed: work, until the signal. */
async function drive(
  ground: Ground,
  composition: Composition,
  control: LocalControlPlane,
  options: ServeOptions,
  undo: (() => Promise<void> | void)[],
): Promise<void> {
  const { engine, consoles, supervisor, images, events } = composition;
  const { log, signal } = options;
  undo.push(() => consoles.stopAll(CONSOLES_MS));
  // Before the engine, whose workers may boot: a console that is theirs by then begins with an empty history.
  const found = await coded(EXIT.badConfiguration, () => ground.store.loadRecords(signal));
  await adoptConsoles(recordsOf(found), composition, log, signal);
  const records = await coded(EXIT.badConfiguration, () => engine.start(signal));
  undo.push(async () => {
    if (!(await engine.quiesce(QUIESCE_MS))) log.warn('engine.quiesce.unfinished');
  });
  undo.push(
    supervisor.onExit((pidFile) => {
      const uid = basename(dirname(pidFile));
      engine.wake(isVmUid(uid) ? uid : undefined);
    }),
  );
  undo.push(
    events.listen((event) => {
      // A new image came, or a VM that held one went: the moment to look at the cache's size.
      if (event.type !== 'image.ready' && event.type !== 'vm.destroyed') return;
      const inUse = engine.imagesInUse();
      // Some record can't be read: any image may be the one that it names.
      if (inUse === undefined) log.warn('image.evict.skipped', { why: "a record can't be read" });
      else detach(images.evict(inUse, signal), log, 'image.evict.failed');
    }),
  );
  detach(keepVmmLogsSmall(engine, ground.clock, log, signal), log, 'vmm-log.keeper.failed');
  const api = await coded(EXIT.cantWriteState, () =>
    startOperatorApi({ ground, composition, control, version: options.version }),
  );
  undo.push(() => api.close(API_MS));

  log.info('agent.started', { version: options.version, control: control.describe(), vms: records.length });
  events.emit({ type: 'agent.started', level: 'info', message: startedLine(ground.facts, composition, control) });
  await coded(EXIT.badInput, () =>
    control.run(makeControlPlaneHost({ ground, composition, version: options.version }), signal),
  );
  log.info('agent.stopping');
}

/** A VMM that warns a thousand times a second must not fill the disk; the supervisor cuts a log at starts only. */
async function keepVmmLogsSmall(
  engine: ReconcileEngine,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await clock.sleep(VMM_LOG_MS, signal);
    } catch {
      return;
    }
    for (const { uid } of engine.report().vms) {
      const path = engine.record(uid)?.paths.vmmLog;
      if (path === undefined) continue;
      await rotateVmmLog(path).catch((err: unknown) => {
        log.warn('vmm-log.rotate.failed', { uid, err });
      });
    }
  }
}

const startedLine = (facts: HostFacts, { platform }: Composition, control: ControlPlane): string =>
  `agent on ${facts.hostname}: ${control.describe()}, backend ${platform.backend} (${platform.capabilities.vmmVersion})`;

/** Guests that run are heard from now on; what they print before is theirs to lose, so this comes early. */
async function adoptConsoles(
  records: readonly VmRecord[],
  { platform, consoles }: Composition,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const ours = records.filter((record) => record.backend === platform.backend);
  await Promise.all(
    ours.map(async (record) => {
      try {
        if (isAlive(await platform.provisioner.observe(instanceOf(record), signal))) await consoles.adopt(record.uid);
      } catch (err) {
        log.warn('console.adopt.failed', { vmId: record.id, uid: record.uid, err });
      }
    }),
  );
}

/** Gives what goes wrong inside the exit code of its stage. */
async function coded<T>(code: ExitCode, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw withExitCode(error instanceof Error ? error : new Error(errorLine(error)), code);
  }
}
