/**
 * The services of a host, as a network plugin is handed them, with every program and process in a namespace. For tests,
 * and for agents of tests that live in a process of their own.
 */
import { execFile } from 'node:child_process';
import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LogFields, Logger, NetworkHost, NetworkSettings, Runner, Supervisor } from '@eitri/core/contracts';
import { errorFactory } from '@eitri/core/kit';
import {
  DetachedSupervisor,
  ExecaRunner,
  ProcProcessTable,
  readHostFacts,
  realHostSources,
  realSupervisorOptions,
  SystemClock,
  SystemRandom,
} from '../../../src/host/index.js';
import { StatePaths } from '../../../src/state/index.js';
import { NamespaceRunner, supervisorIn } from './namespace.js';

export const STATE_ID = 'state-7f3a';

const runner = new ExecaRunner();
const clock = new SystemClock();
const facts = await readHostFacts(realHostSources(runner), new AbortController().signal);
const ip = realpathSync((await runner.which('ip')) ?? '/sbin/ip');

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly fields: LogFields;
}

function keepingLog(lines: LogLine[]): Logger {
  const at =
    (level: LogLine['level']) =>
    (event: string, fields: LogFields = {}): void =>
      void lines.push({ level, event, fields });
  const log: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return log;
}

/** Processes that outlive an agent, in a namespace. */
export const supervisorOf = (namespace: string, logger = keepingLog([])): Supervisor =>
  supervisorIn(
    namespace,
    ip,
    new DetachedSupervisor(clock, logger, facts, realSupervisorOptions(new ProcProcessTable())),
  );

export interface HostOptions {
  readonly namespace: string;
  readonly folder: string;
  readonly settings: Pick<NetworkSettings, 'runDir'> & Partial<NetworkSettings>;
  readonly log: LogLine[];
  /** Stands before every program that the plugin runs. */
  readonly prefix?: readonly string[];
  /** Programs that this host lacks. */
  readonly missing?: readonly string[];
  readonly recordedUids: NetworkHost['recordedUids'];
}

export function makeNetworkHost(options: HostOptions): NetworkHost {
  const { namespace, folder, settings, log, prefix, missing = [], recordedUids } = options;
  const inner: Runner = {
    run: runner.run,
    which: (command) => (missing.includes(command) ? Promise.resolve(undefined) : runner.which(command)),
  };
  const logger = keepingLog(log);
  const none = (): Promise<never> => Promise.reject(new Error('a network has no business with disks and consoles'));
  const paths = new StatePaths({ stateDir: join(folder, 'state'), runDir: settings.runDir });
  return {
    contract: 1,
    facts,
    settings: { chBin: '', firmware: '', vfkitBin: '', guestNetwork: 'plugin' },
    logger,
    runner: new NamespaceRunner(inner, namespace, prefix),
    clock,
    random: new SystemRandom(),
    supervisor: supervisorOf(namespace, logger),
    disks: { cloneRootDisk: none, sizeOf: none, growDisk: none, ensureVolume: none, releaseVolumes: none },
    pumpHooks: { ensure: none, stop: none },
    errors: errorFactory,
    vmPaths: (uid) => Promise.resolve(paths.pathsOf(uid)),
    network: undefined,
    networkSettings: { namedNetworks: [], guestIsolation: false, stateId: STATE_ID, ...settings },
    recordedUids,
  };
}

/** Sends from within a namespace. */
export const sendIn =
  (namespace: string, folder: string) =>
  async (packet: Uint8Array, address: string, port: number): Promise<void> => {
    const file = join(folder, 'packet');
    writeFileSync(file, packet);
    const socat = ['socat', '-u', `FILE:${file}`, `UDP4-SENDTO:${address}:${port.toString()}`];
    await promisify(execFile)('ip', ['netns', 'exec', namespace, ...socat]);
  };
