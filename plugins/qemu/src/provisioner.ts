/**
 * Runs VMs with QEMU: one process a guest, in a session of its own, found again by paths alone.
 *
 * A guest's states as seen here: `absent` → boot → `starting` (the process lives, QMP has not answered yet) → `running` ⇄
 * `paused` → `stopping` (it was asked to end) → `exited`. The process decides whether a guest is there; QMP only says
 * what it does. So a VMM that is slow to answer is never taken for a dead one, and nothing is killed for being slow.
 *
 * Never touches root disk, seed or volumes but to hand them to QEMU; never signals but through the supervisor.
 * Held by test/unit/qemu/provisioner.test.ts, test/integration/qemu and test/conformance/qemu.test.ts.
 */
import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, open, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type {
  BackendHost,
  Capabilities,
  Observation,
  Provisioner,
  ShutdownProgress,
  ShutdownStep,
  VmInstance,
  VmPaths,
  VmUid,
} from '@eitri/core/contracts';
import { buildArguments, type GuestNics } from './arguments.js';
import { capabilitiesOf } from './capabilities.js';
import { slept, unhurried } from './deadline.js';
import { findFirmware, firmwareAdvice, firmwarePlaces, type Firmware } from './firmware.js';
import {
  FILE_MODE,
  FOLDER_MODE,
  maxSocketPathBytes,
  qmpSocketOf,
  serialSocketOf,
  varsFileOf,
  type GuestPaths,
} from './guest-files.js';
import type { GuestProcesses } from './guest-process.js';
import { inspectInstallation, type Installation, type Trial } from './installation.js';
import type { QmpClients } from './qmp.js';
import { refusalsOf } from './spec-check.js';
import { markRun, readFailureReason } from './vmm-log.js';

export interface QemuOptions extends Trial {
  /** How long `boot` watches a new VMM: one that can't run says so within moments. */
  readonly bootWatchMs: number;
  /** How long one look at QMP may take. */
  readonly queryLimitMs: number;
  /** Whether the host has a network device of this name. */
  readonly deviceExists: (name: string) => Promise<boolean>;
}

export const DEFAULT_OPTIONS: Omit<QemuOptions, 'accelerators'> = {
  trialMs: 15_000,
  bootWatchMs: 10_000,
  queryLimitMs: 1_500,
  deviceExists: async (name) => (await sizeOf(join('/sys/class/net', name))) !== undefined,
};

const BOOT_POLL_MS = 50;
const BUTTON_LIMIT_MS = 5_000;
const ENDING_WAIT_MS = 2_000;
/** QEMU ends at once when it is told to, flushing its disks first. */
const TERMINATE_WAIT_MS = 3_000;
/** A killed process is gone when the kernel has unmapped it, which takes a moment for a large guest. */
const KILL_WAIT_MS = 15_000;

type Doing = 'running' | 'paused' | 'fullDisk' | 'fault' | 'stopping' | 'starting';

export class QemuProvisioner implements Provisioner {
  private installation: Promise<Installation> | undefined;
  /** The last thing that a guest's QMP said, for the process it said it of. */
  private readonly lastSeen = new Map<VmUid, { readonly pid: number; readonly doing: Doing }>();

  constructor(
    private readonly host: BackendHost,
    private readonly qmp: QmpClients,
    private readonly processes: GuestProcesses,
    private readonly paths: GuestPaths,
    private readonly options: QemuOptions,
  ) {}

  readonly capabilities = async (signal: AbortSignal): Promise<Capabilities> => {
    let installation: Installation | undefined;
    try {
      installation = await this.installed(signal);
    } catch (err) {
      signal.throwIfAborted();
      // preflight, which comes next, refuses with the reason; this is only asked what could be done.
      this.host.logger.debug('qemu.notInstalled', { err });
    }
    return capabilitiesOf(this.host.facts, this.host.settings.guestNetwork, installation);
  };

  readonly preflight = async (signal: AbortSignal): Promise<void> => {
    const { arch, os } = this.host.facts;
    const installation = await this.installed(signal);
    await this.firmware(installation, undefined);
    if (this.host.settings.guestNetwork === 'plugin' && this.host.network === undefined) {
      throw this.host.errors.permanent(
        'there is no network plugin for guests: install one, or run the agent with --guest-network user, whose guests reach nothing and are reached through published ports only',
        { code: 'NetworkFailed' },
      );
    }
    const { executable, versionLine, accelerator, emulatedBecause } = installation;
    this.host.logger.info('qemu.ready', { os, arch, executable, versionLine, accelerator, emulatedBecause });
  };

  readonly prepareRootDisk = async (vm: VmInstance, basePath: string, signal: AbortSignal): Promise<void> => {
    this.paths.remember(vm);
    await mkdir(vm.paths.guestFolder, { recursive: true });
    const { diskGib } = vm.spec;
    await this.host.disks.cloneRootDisk(
      { uid: vm.uid, basePath, path: vm.paths.rootDisk, ...(diskGib === undefined ? {} : { sizeGib: diskGib }) },
      signal,
    );
  };

  readonly boot = async (vm: VmInstance, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    this.paths.remember(vm);
    if (await this.alive(vm, 'boot', signal)) {
      await this.host.pumpHooks.ensure(vm.uid);
      return;
    }
    await this.refuseUnfit(vm, signal);
    const installation = await this.installed(signal);
    // The network before QEMU, which takes the tap as an argument: the network's own words tell more than QEMU's about it.
    // The files meanwhile: one waits for other programs, the other for the disk.
    const [attached, prepared] = await Promise.allSettled([
      this.attachNetwork(vm, signal),
      this.prepareFiles(vm, installation),
    ]);
    if (attached.status === 'rejected') throw attached.reason;
    if (prepared.status === 'rejected') throw prepared.reason;
    const [nics, firmware] = [attached.value, prepared.value];
    const args = buildArguments({
      os: this.host.facts.os,
      arch: this.host.facts.arch,
      accelerator: installation.accelerator,
      version: installation.version,
      id: vm.spec.id,
      uid: vm.uid,
      cpus: vm.spec.cpus,
      memoryMib: vm.spec.memoryMib,
      firmwareCode: firmware.code,
      firmwareVars: varsFileOf(vm.paths),
      rootDisk: vm.paths.rootDisk,
      seed: vm.paths.seed,
      volumes: vm.volumePaths,
      nics,
      serialSocket: serialSocketOf(vm.paths),
      qmpSocket: qmpSocketOf(vm.paths),
      hardware: vm.spec.hardware,
      limits: vm.spec.limits,
    });
    await this.removeSockets(vm.paths);
    await markRun(vm.paths.vmmLog, this.host.clock.now());
    const ref = await this.processes.refOf(vm.paths);
    const { pid } = await this.host.supervisor.start({ ...ref, args, logFile: vm.paths.vmmLog }, signal);
    this.lastSeen.delete(vm.uid);
    try {
      // At once: what a guest prints while nobody reads is lost.
      await this.host.pumpHooks.ensure(vm.uid);
      await this.watchStart(vm, pid, signal);
    } catch (cause) {
      await this.endFailedStart(vm, cause);
      throw cause;
    }
  };

  readonly observe = async (vm: VmInstance, signal: AbortSignal): Promise<Observation> => {
    this.paths.remember(vm);
    try {
      const process = await this.processes.observe(vm.paths, signal);
      switch (process.state) {
        case 'absent':
        case 'exited':
        case 'unknown':
          return process;
        case 'alive':
          return observationOf(await this.doing(vm, process.pid, signal), process.pid);
      }
    } catch (error) {
      return { state: 'unknown', why: error instanceof Error ? error.message : String(error) };
    }
  };

  readonly failureReason = async (vm: VmInstance, signal: AbortSignal): Promise<string | undefined> => {
    signal.throwIfAborted();
    return readFailureReason(vm.paths.vmmLog);
  };

  readonly address = async (vm: VmInstance, signal: AbortSignal): Promise<string | undefined> =>
    this.tapNetwork()?.address(vm.uid, signal);

  readonly networkAddress = async (vm: VmInstance, signal: AbortSignal): Promise<string | undefined> =>
    this.tapNetwork()?.networkAddress(vm.uid, signal);

  readonly resume = async (vm: VmInstance, signal: AbortSignal): Promise<void> => {
    this.paths.remember(vm);
    const process = await this.processes.observe(vm.paths, signal);
    // What was paused otherwise, and a guest that ends, is not told to go on.
    if (process.state !== 'alive' || (await this.doing(vm, process.pid, signal)) !== 'fullDisk') return;
    try {
      await this.qmp.run(qmpSocketOf(vm.paths), [{ execute: 'cont' }], BUTTON_LIMIT_MS, signal);
    } catch (cause) {
      signal.throwIfAborted();
      throw this.host.errors.retryable(`resume ${vm.spec.id}`, { cause });
    }
  };

  readonly shutdown = async (vm: VmInstance, step: ShutdownStep, signal: AbortSignal): Promise<ShutdownProgress> => {
    this.paths.remember(vm);
    // A kill is not skipped because its caller has lost interest.
    const patience = step === 'kill' ? unhurried() : signal;
    if (!(await this.alive(vm, 'shut down', patience))) return this.gone(vm);
    switch (step) {
      case 'powerButton':
        return this.pressPowerButton(vm, signal);
      case 'terminate':
        return this.terminate(vm, signal);
      case 'kill':
        await this.kill(vm);
        return this.gone(vm);
    }
  };

  readonly destroy = async (vm: VmInstance, _signal: AbortSignal): Promise<void> => {
    this.paths.remember(vm);
    // A kill that is refused ends this here: record, taps and reservation are the handles on what still runs.
    if (await this.alive(vm, 'destroy', unhurried())) await this.kill(vm);
    await this.gone(vm);
    // The ports that QEMU published went with it.
    await this.tapNetwork()?.deleteTap(vm.uid, unhurried());
    await rmdir(vm.paths.runFolder).catch(() => undefined);
    await this.processes.forget(vm.paths);
    this.lastSeen.delete(vm.uid);
    this.paths.forget(vm.uid);
  };

  /** The taps' network; undefined with QEMU's own. */
  private tapNetwork(): BackendHost['network'] {
    return this.host.settings.guestNetwork === 'user' ? undefined : this.host.network;
  }

  /** Looked at once: a failed look is not remembered, so that an installed package is seen at the next try. */
  private async installed(signal: AbortSignal): Promise<Installation> {
    this.installation ??= inspectInstallation(this.host, this.options, signal);
    const current = this.installation;
    try {
      return await current;
    } catch (error) {
      if (this.installation === current) this.installation = undefined;
      throw error;
    }
  }

  private async firmware(installation: Installation, varsBytes: number | undefined): Promise<Firmware> {
    const { os, arch } = this.host.facts;
    const found = await findFirmware(firmwarePlaces(os, arch, installation.executable), arch, sizeOf, varsBytes);
    if (found !== undefined) return found;
    const what =
      varsBytes === undefined
        ? 'UEFI firmware for QEMU is not on this host'
        : `no UEFI firmware on this host goes with a guest's variables of ${varsBytes.toString()} bytes`;
    throw this.host.errors.permanent(`${what}: ${firmwareAdvice(os, arch)}`, { code: 'BackendMissing' });
  }

  /** Whether a VMM of ours runs. Rejects when it can't be told: then nothing is started and nothing ended. */
  private async alive(vm: VmInstance, verb: string, signal: AbortSignal): Promise<boolean> {
    const process = await this.processes.observe(vm.paths, signal);
    switch (process.state) {
      case 'alive':
        return true;
      case 'absent':
      case 'exited':
        return false;
      case 'unknown':
        throw this.host.errors.retryable(
          `${verb} ${vm.spec.id}: it can't be told whether its qemu runs: ${process.why}`,
        );
    }
  }

  private async refuseUnfit(vm: VmInstance, signal: AbortSignal): Promise<void> {
    const refusals = refusalsOf(vm.spec, await this.capabilities(signal));
    if (refusals.length > 0) throw this.host.errors.permanent(refusals.join('; '), { code: 'SpecInvalid' });
    const limit = maxSocketPathBytes(this.host.facts.os);
    const path = serialSocketOf(vm.paths);
    if (Buffer.byteLength(path) > limit) {
      throw this.host.errors.permanent(
        `${path} is longer than the ${limit.toString()} bytes of a unix socket's path: choose a shorter --run-dir`,
      );
    }
  }

  private async attachNetwork(vm: VmInstance, signal: AbortSignal): Promise<GuestNics> {
    if (this.host.settings.guestNetwork === 'user') return { kind: 'user', mac: vm.mac };
    const { network } = this.host;
    if (network === undefined) {
      throw this.host.errors.permanent('there is no network plugin, and user-mode networking was not asked for', {
        code: 'NetworkFailed',
      });
    }
    const named = vm.spec.networks[0];
    try {
      const address = await network.reserveIp(vm.uid, vm.mac, signal);
      await network.createTap(
        {
          uid: vm.uid,
          mac: vm.mac,
          address,
          ...(named === undefined ? {} : { named: { network: named.name, mac: vm.namedMac } }),
        },
        signal,
      );
      const first = { tap: await this.tapThere(await network.tapName(vm.uid)), mac: vm.mac };
      if (named === undefined) return { kind: 'tap', first };
      const second = { tap: await this.tapThere(await network.netTapName(vm.uid)), mac: vm.namedMac };
      return { kind: 'tap', first, named: second };
    } catch (cause) {
      throw this.host.errors.retryable(`attach ${vm.spec.id} to the network`, { cause, code: 'NetworkFailed' });
    }
  }

  /** As root, QEMU makes a tap that is missing by itself, outside the bridge: a guest that hears nobody. */
  private async tapThere(tap: string): Promise<string> {
    if (await this.options.deviceExists(tap)) return tap;
    throw this.host.errors.retryable(`tap ${tap} is gone`);
  }

  private async prepareFiles(vm: VmInstance, installation: Installation): Promise<Firmware> {
    await this.prepareFolders(vm.paths);
    return this.prepareFirmware(vm, installation);
  }

  private async prepareFolders(paths: VmPaths): Promise<void> {
    await mkdir(paths.guestFolder, { recursive: true });
    await mkdir(paths.runFolder, { recursive: true, mode: FOLDER_MODE });
    // mkdir's mode passes through the umask, and does nothing to a folder that was there.
    await chmod(paths.runFolder, FOLDER_MODE);
  }

  /** The guest's own variables, made once: what its firmware wrote there must outlive every upgrade of the host. */
  private async prepareFirmware(vm: VmInstance, installation: Installation): Promise<Firmware> {
    const vars = varsFileOf(vm.paths);
    const firmware = await this.firmware(installation, await sizeOf(vars));
    if ((await sizeOf(vars)) === undefined) await copyDurably(firmware.varsTemplate, vars);
    return firmware;
  }

  private async removeSockets(paths: VmPaths): Promise<void> {
    await rm(qmpSocketOf(paths), { force: true });
    await rm(serialSocketOf(paths), { force: true });
  }

  /**
   * Watches the first moments of a VMM: until it answers, ends, or the watch is over. One that ended has failed, in its
   * own words; one that only has not answered yet is left alone.
   */
  private async watchStart(vm: VmInstance, pid: number, signal: AbortSignal): Promise<void> {
    const { clock, logger, errors } = this.host;
    const end = clock.monotonicMs() + this.options.bootWatchMs;
    for (;;) {
      // Not the caller's signal: it bounds the attaching of the network, and a VMM once started outlives it.
      const process = await this.processes.observe(vm.paths, unhurried());
      if (process.state === 'absent' || process.state === 'exited') {
        const reason = await readFailureReason(vm.paths.vmmLog);
        const how = process.state === 'exited' ? endingOf(process) : '';
        throw errors.retryable(`start ${vm.spec.id}: ${reason ?? `qemu ended at once${how}, without a word`}`, {
          code: 'VmmFailed',
        });
      }
      if ((await this.askDoing(vm, pid, unhurried())) !== undefined) return;
      if (signal.aborted || clock.monotonicMs() >= end) {
        logger.warn('qemu.start.noAnswerYet', { vmId: vm.spec.id, uid: vm.uid, pid });
        return;
      }
      await slept(clock, BOOT_POLL_MS, signal);
    }
  }

  /** What a living VMM does; what it did when it last answered, while it does not answer. */
  private async doing(vm: VmInstance, pid: number, signal: AbortSignal): Promise<Doing> {
    const before = this.lastSeen.get(vm.uid);
    const known = before?.pid === pid ? before.doing : 'starting';
    const now = (await this.askDoing(vm, pid, signal)) ?? known;
    // Asked to end and not gone yet: QMP goes on saying "running".
    return known === 'stopping' ? 'stopping' : now;
  }

  private async askDoing(vm: VmInstance, pid: number, signal: AbortSignal): Promise<Doing | undefined> {
    try {
      const [answer] = await this.qmp.run(
        qmpSocketOf(vm.paths),
        [{ execute: 'query-status' }],
        this.options.queryLimitMs,
        signal,
      );
      const doing = doingOf(answer);
      const before = this.lastSeen.get(vm.uid);
      const ending = before?.pid === pid && before.doing === 'stopping';
      if (doing !== undefined && !ending) this.lastSeen.set(vm.uid, { pid, doing });
      return doing;
    } catch (err) {
      this.host.logger.debug('qemu.qmp.noAnswer', { vmId: vm.spec.id, uid: vm.uid, err });
      return undefined;
    }
  }

  private async pressPowerButton(vm: VmInstance, signal: AbortSignal): Promise<ShutdownProgress> {
    try {
      await this.qmp.run(qmpSocketOf(vm.paths), [{ execute: 'system_powerdown' }], BUTTON_LIMIT_MS, signal);
      return 'asked';
    } catch (cause) {
      // A guest that ends has its sockets removed a moment before its process is gone.
      const ending = signal.aborted ? 0 : ENDING_WAIT_MS;
      if (await this.processes.waitGone(vm.paths, ending, unhurried())) return this.gone(vm);
      throw this.host.errors.retryable(`press the power button of ${vm.spec.id}`, { cause });
    }
  }

  /** SIGTERM and not QMP's `quit`: QEMU does the same for both, and a signal needs no socket that somebody may hold. */
  private async terminate(vm: VmInstance, signal: AbortSignal): Promise<ShutdownProgress> {
    const process = await this.processes.observe(vm.paths, signal);
    const answer = await this.processes.signal(vm.paths, 'SIGTERM');
    if (process.state === 'alive') this.lastSeen.set(vm.uid, { pid: process.pid, doing: 'stopping' });
    if (answer === 'gone' || (await this.processes.waitGone(vm.paths, TERMINATE_WAIT_MS, signal))) return this.gone(vm);
    return 'asked';
  }

  private async kill(vm: VmInstance): Promise<void> {
    try {
      if ((await this.processes.signal(vm.paths, 'SIGKILL')) === 'gone') return;
    } catch (cause) {
      throw this.host.errors.retryable(`kill the qemu of ${vm.spec.id}`, { cause });
    }
    if (!(await this.processes.waitGone(vm.paths, KILL_WAIT_MS, unhurried()))) {
      throw this.host.errors.retryable(
        `kill the qemu of ${vm.spec.id}: it is still there ${KILL_WAIT_MS.toString()} ms after SIGKILL`,
      );
    }
  }

  /** Nothing of a boot that is rejected may be left; where that fails too, the reason of the boot stands behind it. */
  private async endFailedStart(vm: VmInstance, cause: unknown): Promise<void> {
    try {
      await this.kill(vm);
      await this.gone(vm);
    } catch (err) {
      this.host.logger.error('qemu.start.leftBehind', { vmId: vm.spec.id, uid: vm.uid, err });
      throw this.host.errors.retryable(`end what is left of the start of ${vm.spec.id}`, { cause });
    }
  }

  /** No VMM is left: what reads its sockets ends, and they go. */
  private async gone(vm: VmInstance): Promise<'gone'> {
    await this.host.pumpHooks.stop(vm.uid);
    await this.removeSockets(vm.paths);
    return 'gone';
  }
}

/** Size of a file, undefined where there is none. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch {
    return undefined;
  }
}

/** A copy that stands whole or not at all, also after a power cut. */
async function copyDurably(from: string, to: string): Promise<void> {
  const partial = `${to}.partial`;
  await rm(partial, { force: true });
  await copyFile(from, partial, constants.COPYFILE_EXCL);
  await chmod(partial, FILE_MODE);
  await sync(partial);
  await rename(partial, to);
  await sync(dirname(to));
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function endingOf(process: { readonly code?: number; readonly signal?: string }): string {
  if (process.signal !== undefined) return ` by ${process.signal}`;
  return process.code === undefined ? '' : ` with code ${process.code.toString()}`;
}

function observationOf(doing: Doing, pid: number): Observation {
  switch (doing) {
    case 'fullDisk':
    case 'fault':
      return { state: 'paused', pid, by: doing };
    case 'paused':
      return { state: 'paused', pid, by: 'other' };
    default:
      return { state: doing, pid };
  }
}

/** QEMU's run states in the contract's words. */
function doingOf(answer: unknown): Doing | undefined {
  if (typeof answer !== 'object' || answer === null || !('status' in answer)) return undefined;
  switch (answer.status) {
    case 'running':
      return 'running';
    case 'prelaunch':
    case 'inmigrate':
    case 'restore-vm':
      return 'starting';
    case 'shutdown':
      return 'stopping';
    case 'io-error':
      return 'fullDisk';
    case 'internal-error':
      return 'fault';
    // By the guest (`suspended`), by somebody at its monitor, by a crash that was kept for a look.
    default:
      return 'paused';
  }
}
