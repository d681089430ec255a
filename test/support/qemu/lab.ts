/**
 * A place where real QEMU guests run for a test: a folder, the real host services over it, and agents that come and go.
 *
 * An `agent()` is one life of an agent: a new one over the same lab is a restart. When the test is over, every process
 * that was started here is ended, by its own pid.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { FakePumpHooks, sampleSpec, sampleUid, sampleVm } from '@eitri/conformance';
import type {
  BackendHost,
  DiskService,
  Network,
  ProvisionerBackend,
  Supervisor,
  VmInstance,
  VmPaths,
  VmSpec,
  VmUid,
} from '@eitri/core/contracts';
import { errorFactory } from '@eitri/core/kit';
import { createQemuBackend, type QemuOptions } from '@eitri/plugin-qemu';
import { QmpClients } from '../../../plugins/qemu/src/qmp.js';
import {
  DetachedSupervisor,
  ExecaRunner,
  processTableFor,
  readHostFacts,
  realHostSources,
  realSupervisorOptions,
  SystemClock,
  SystemRandom,
  type SupervisorOptions,
} from '../../../src/host/index.js';
import { StatePaths } from '../../../src/state/index.js';
import { silent } from '../quiet.js';
import { tempFolder } from '../temp.js';

const BLANK_DISK_BYTES = 1024 * 1024;

const runner = new ExecaRunner();
const clock = new SystemClock();
const facts = await readHostFacts(realHostSources(runner), new AbortController().signal);
const processes = realSupervisorOptions(processTableFor(facts, runner));

/** The host's own supervisor; `changes` stand in the kernel's way. */
export const realSupervisor = (changes: Partial<SupervisorOptions> = {}): Supervisor =>
  new DetachedSupervisor(clock, silent, facts, { ...processes, ...changes });

export interface AgentOptions {
  readonly qemu?: Partial<QemuOptions>;
  readonly guestNetwork?: 'user' | 'plugin';
  readonly network?: Network;
  readonly qemuBin?: string;
  readonly supervisor?: Supervisor;
  readonly pumps?: FakePumpHooks;
}

export interface Agent extends ProvisionerBackend {
  readonly host: BackendHost;
  readonly pumps: FakePumpHooks;
}

export interface Lab {
  readonly folder: string;
  /** A new life of an agent over the same files. */
  readonly agent: (options?: AgentOptions) => Agent;
  readonly pathsOf: (uid: VmUid) => VmPaths;
  /** A blank raw disk of this name. */
  readonly blankDisk: (name: string) => string;
  /** A client that takes a socket and keeps it, until the test is over. */
  readonly hold: (path: string) => Promise<Socket>;
  /** Gives QEMU one command, beside the agent. */
  readonly command: (path: string, execute: string) => Promise<void>;
  /** A VM with a blank seed and no root disk. */
  readonly newVm: (n: number, spec?: Partial<VmSpec>) => VmInstance;
  /** A VM whose root disk is blank, or a copy of `image`, grown to `diskMib`. */
  readonly vm: (n: number, options?: { readonly image?: string; readonly spec?: Partial<VmSpec> }) => VmInstance;
}

export function qemuLab(): Lab {
  const folder = tempFolder();
  const started = new Set<string>();
  const { pathsOf } = new StatePaths({ stateDir: folder, runDir: join(folder, 'run') });
  onTestFinished(() => {
    for (const pidFile of started) endRecorded(pidFile);
  });
  const newVm = (n: number, spec: Partial<VmSpec> = {}): VmInstance => {
    const uid = sampleUid(n);
    const paths = pathsOf(uid);
    started.add(paths.pidFile);
    mkdirSync(paths.guestFolder, { recursive: true });
    writeFileSync(paths.seed, '');
    truncateSync(paths.seed, BLANK_DISK_BYTES);
    return sampleVm(uid, sampleSpec(`vm-${n.toString()}`, spec), paths);
  };
  return {
    folder,
    pathsOf,
    agent: (options = {}) => {
      const pumps = options.pumps ?? new FakePumpHooks();
      const host: BackendHost = {
        contract: 1,
        facts,
        settings: {
          chBin: '',
          firmware: '',
          vfkitBin: '',
          guestNetwork: options.guestNetwork ?? 'user',
          ...(options.qemuBin === undefined ? {} : { qemuBin: options.qemuBin }),
        },
        logger: silent,
        runner,
        clock,
        random: new SystemRandom(),
        supervisor: options.supervisor ?? realSupervisor(),
        disks: new CopiedDisks(),
        pumpHooks: pumps,
        errors: errorFactory,
        vmPaths: (uid) => Promise.resolve(pathsOf(uid)),
        network: options.network,
      };
      return { host, pumps, ...createQemuBackend(host, { accelerators: ['tcg'], ...options.qemu }) };
    },
    blankDisk: (name) => {
      const path = join(folder, name);
      writeFileSync(path, '');
      truncateSync(path, BLANK_DISK_BYTES);
      return path;
    },
    hold: async (path) => {
      const socket = connect({ path });
      onTestFinished(() => void socket.destroy());
      await new Promise<void>((resolve, reject) => {
        // Greeted: from now on nobody else is.
        socket.once('data', () => resolve());
        socket.once('error', reject);
      });
      return socket;
    },
    command: async (path, execute) => {
      await new QmpClients({ clock, errors: errorFactory }).run(
        path,
        [{ execute }],
        10_000,
        new AbortController().signal,
      );
    },
    newVm,
    vm: (n, options = {}) => {
      const vm = newVm(n, options.spec);
      const { rootDisk } = vm.paths;
      if (options.image === undefined) {
        writeFileSync(rootDisk, '');
        truncateSync(rootDisk, BLANK_DISK_BYTES);
      } else {
        copyFileSync(options.image, rootDisk);
        truncateSync(rootDisk, 2 ** 30);
      }
      return vm;
    },
  };
}

/** Ends what a pidfile of this lab records. */
function endRecorded(pidFile: string): void {
  try {
    const { pid } = JSON.parse(readFileSync(pidFile, 'utf8')) as { readonly pid: number };
    if (readFileSync(`/proc/${pid.toString()}/cmdline`, 'utf8').includes('qemu')) process.kill(pid, 'SIGKILL');
  } catch {
    // Ended already, as it should be.
  }
  rmSync(pidFile, { force: true });
}

/** The part of the disk service that a provisioner uses: a copy, grown. */
class CopiedDisks implements DiskService {
  readonly cloneRootDisk: DiskService['cloneRootDisk'] = async (request) => {
    copyFileSync(request.basePath, request.path);
    const sizeBytes = (request.sizeGib ?? 1) * 2 ** 30;
    truncateSync(request.path, sizeBytes);
    return Promise.resolve({ sizeBytes });
  };
  readonly sizeOf: DiskService['sizeOf'] = async () => Promise.resolve(undefined);
  readonly growDisk: DiskService['growDisk'] = async () => Promise.resolve();
  readonly ensureVolume: DiskService['ensureVolume'] = async ({ name }) => Promise.resolve({ path: name });
  readonly releaseVolumes: DiskService['releaseVolumes'] = async () => Promise.resolve();
}
