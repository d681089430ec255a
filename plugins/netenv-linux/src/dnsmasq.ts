/**
 * The one dnsmasq of the guests' bridge: started, taken over, told of reservations, asked to forget leases, stopped.
 *
 * It outlives the agent, so that guests renew while none is there. Whose it is and what it runs with is on disk: the
 * supervisor's pidfile, and the configuration that it was started with, which is written only while it does not run. A
 * configuration that is not the wanted one therefore means a restart; so does a bridge that was made anew.
 *
 *     (down) ── start ──► running ── hosts, SIGHUP ──► running        start over a running one: taken over, or restarted
 *
 * Held by test/integration/netenv-linux.
 */
import { realpath, rm, stat, truncate } from 'node:fs/promises';
import type { NetworkHost, ProcessRef, Reservation } from '@eitri/core/contracts';
import { gatewayOf, type Cidr } from './cidr.js';
import { DHCP_SERVER_PORT, releasePacket, type SendDatagram } from './dhcp-release.js';
import {
  configOf,
  dnsmasqPaths,
  fieldsOf,
  hostsOf,
  lastWords,
  parseHosts,
  parseLeases,
  reloadOutcome,
  withoutLease,
  type DnsmasqPaths,
  type Lease,
  type ServiceUser,
} from './dnsmasq-files.js';
import { BRIDGE } from './names.js';
import { blockedAt, rightsOf } from './passable.js';
import { Serial, Shared, unhurried } from './serial.js';
import { ensureFolder, readIfThere, writeWhole } from './whole-file.js';

/** In order of preference: its own, as its package makes it. */
const USERS = ['dnsmasq', 'nobody'];
const READY_MS = 10_000;
const RELEASE_MS = 2_000;
const STOP_MS = 5_000;
const POLL_MS = 20;
const RESEND_MS = 200;
const MAX_LOG_BYTES = 2 ** 20;
/** The folder and the hosts are for dnsmasq to read, and for root alone to change. */
const FOLDER_MODE = 0o750;
const HOSTS_MODE = 0o640;
const PRIVATE_MODE = 0o600;

export interface DhcpServerOptions {
  readonly resolvFile: string | undefined;
  readonly send: SendDatagram;
}

export type StartOutcome = 'started' | 'taken over' | 'restarted';

interface Found {
  readonly ref: ProcessRef;
  readonly user: ServiceUser;
  readonly executable: string;
}

export class DhcpServer {
  private readonly paths: DnsmasqPaths;
  private found: Found | undefined;
  /** Starting, stopping and telling it are one matter at a time. */
  private readonly serial = new Serial();
  private readonly telling = new Shared(() => this.serial.run(() => this.tellHosts(unhurried())));

  constructor(
    private readonly host: NetworkHost,
    private readonly cidr: Cidr,
    private readonly served: () => readonly Reservation[],
    private readonly options: DhcpServerOptions,
  ) {
    this.paths = dnsmasqPaths(host.networkSettings.runDir);
  }

  /** Whether one of ours runs. */
  async runs(signal: AbortSignal): Promise<boolean> {
    const { ref } = await this.find(signal);
    return this.isAlive(ref, signal);
  }

  /** Rejects with what would keep it from running here. Makes nothing. */
  check(signal: AbortSignal): Promise<void> {
    return this.serial.run(async () => {
      const { ref, user } = await this.find(signal);
      await this.checkPassable(this.host.networkSettings.runDir, user);
      // Ours has the port, and keeps it, or gives it back before it is started again.
      if (!(await this.isAlive(ref, signal))) await this.checkPort(signal);
    });
  }

  /** Makes sure that one runs, with the configuration of now, and knows the reservations of now. */
  start(bridgeIndex: number, signal: AbortSignal): Promise<StartOutcome> {
    return this.serial.run(async () => {
      const { ref, user } = await this.find(signal);
      const config = this.config(user, bridgeIndex);
      await this.prepareFolder(user);
      const alive = await this.isAlive(ref, signal);
      if (alive && (await readIfThere(this.paths.config)) === config) {
        await this.tellHosts(signal);
        return 'taken over';
      }
      if (alive) await this.end(ref);
      await this.checkPort(signal);
      await this.launch(config, signal);
      return alive ? 'restarted' : 'started';
    });
  }

  /** Writes the reservations and has them read; resolved means that they are answered by. Shared by all who ask at once. */
  tell(): Promise<void> {
    return this.telling.run();
  }

  /** Whether it runs, with this bridge and these reservations. */
  async isTrue(bridgeIndex: number, signal: AbortSignal): Promise<boolean> {
    const { ref, user } = await this.find(signal);
    if (!(await this.isAlive(ref, signal))) return false;
    if ((await readIfThere(this.paths.config)) !== this.config(user, bridgeIndex)) return false;
    return (await readIfThere(this.paths.hosts)) === hostsOf(this.served());
  }

  /** What it was told to answer before the next start, or has leased: addresses by MAC. */
  async formerly(): Promise<ReadonlyMap<string, string>> {
    const told = parseHosts((await readIfThere(this.paths.hosts)) ?? '');
    return new Map([...(await this.leases()), ...told].map(({ mac, address }) => [mac, address]));
  }

  /** Leases that it holds, of whoever. */
  async leases(): Promise<readonly Lease[]> {
    return parseLeases((await readIfThere(this.paths.leases)) ?? '');
  }

  /** Resolved means that no lease of this MAC is left. */
  release(mac: string): Promise<void> {
    return this.serial.run(async () => {
      const { ref } = await this.find(unhurried());
      for (const lease of (await this.leases()).filter((held) => held.mac === mac)) {
        const alive = await this.isAlive(ref, unhurried());
        if (alive && (await this.giveBack(lease))) continue;
        this.host.logger.warn('netenv.lease.cut', { ...lease, alive });
        await this.cutOut(lease, ref, alive);
      }
    });
  }

  /** Ends it and removes its files. */
  remove(): Promise<void> {
    return this.serial.run(async () => {
      // Without the folder there never was one.
      if ((await readIfThere(this.paths.config)) !== undefined) {
        const { ref } = await this.find(unhurried());
        if (await this.isAlive(ref, unhurried())) await this.end(ref);
      }
      await rm(this.paths.folder, { recursive: true, force: true });
    });
  }

  private config(user: ServiceUser, bridgeIndex: number): string {
    const { resolvFile } = this.options;
    return configOf({ cidr: this.cidr, bridge: BRIDGE, bridgeIndex, user, paths: this.paths, resolvFile });
  }

  private async find(signal: AbortSignal): Promise<Found> {
    if (this.found !== undefined) return this.found;
    const path = await this.host.runner.which('dnsmasq');
    if (path === undefined) throw this.host.errors.permanent('dnsmasq is not on this host', { code: 'BackendMissing' });
    const user = await this.serviceUser(signal);
    const executable = await realpath(path);
    const identity = { executable, userId: user.userId, dropsPrivileges: true, option: '-C', value: this.paths.config };
    this.found = { executable, user, ref: { pidFile: this.paths.pidFile, identity } };
    return this.found;
  }

  private async serviceUser(signal: AbortSignal): Promise<ServiceUser> {
    for (const name of USERS) {
      const [, , userId, groupId] = await this.entry('passwd', name, signal);
      const [group] = groupId === undefined ? [] : await this.entry('group', groupId, signal);
      if (userId === undefined || groupId === undefined || group === undefined) continue;
      return { name, userId: Number(userId), group, groupId: Number(groupId) };
    }
    throw this.host.errors.permanent(
      `no user for dnsmasq is on this host: neither ${USERS.join(' nor ')}; make one with useradd --system dnsmasq`,
    );
  }

  private async entry(database: string, key: string, signal: AbortSignal): Promise<readonly string[]> {
    // Code 2: there is none of this name.
    const request = { command: 'getent', args: [database, key], okCodes: [0, 2] };
    const { stdout } = await this.host.runner.run(request, signal);
    return stdout.trim() === '' ? [] : fieldsOf(stdout);
  }

  private async prepareFolder(user: ServiceUser): Promise<void> {
    const { errors } = this.host;
    try {
      await ensureFolder(this.paths.folder, { mode: FOLDER_MODE, groupId: user.groupId });
    } catch (cause) {
      throw errors.retryable(`make the folder ${this.paths.folder}`, { cause });
    }
    await this.checkPassable(this.paths.folder, user);
  }

  private async checkPassable(folder: string, user: ServiceUser): Promise<void> {
    const blocked = blockedAt(await rightsOf(folder), user);
    if (blocked === undefined) return;
    throw this.host.errors.permanent(
      `the user ${user.name}, as which dnsmasq runs, can't pass ${blocked}, and the reservations are below it: let it pass (chmod o+x ${blocked}), or choose another --run-dir`,
    );
  }

  private async isAlive(ref: ProcessRef, signal: AbortSignal): Promise<boolean> {
    const state = await this.host.supervisor.observe(ref, signal);
    if (state.state === 'unknown') throw this.host.errors.retryable(`look for the dnsmasq of ${BRIDGE}: ${state.why}`);
    return state.state === 'alive';
  }

  /** Two servers on one device would both answer, or one would hear nothing. */
  private async checkPort(signal: AbortSignal): Promise<void> {
    const port = DHCP_SERVER_PORT.toString();
    const args = ['-Hlunp', 'sport', '=', `:${port}`];
    const { stdout } = await this.host.runner.run({ command: 'ss', args }, signal);
    const taken = stdout.split('\n').find((line) => {
      const device = /\s\S+?(?:%([^\s:]+))?:67\s/.exec(line);
      return device !== null && (device[1] === undefined || device[1] === BRIDGE);
    });
    if (taken === undefined) return;
    const by = /users:\(\("([^"]+)",pid=(\d+)/.exec(taken);
    const whom = by === null ? 'another process' : `${by[1] ?? ''} (pid ${by[2] ?? ''})`;
    throw this.host.errors.retryable(
      `port ${port} is taken on ${BRIDGE} by ${whom}: end that DHCP server, or bind it to other devices`,
      { code: 'PortTaken' },
    );
  }

  private async launch(config: string, signal: AbortSignal): Promise<void> {
    const { ref, user } = await this.find(signal);
    await this.writeHosts(user);
    await writeWhole(this.paths.config, config, { mode: PRIVATE_MODE, groupId: user.groupId });
    await this.host.supervisor.forget(ref);
    const from = await this.logSize();
    // Its log is read: one language, on every host.
    const request = { ...ref, args: ['-C', this.paths.config], logFile: this.paths.log, env: { LC_ALL: 'C' } };
    await this.host.supervisor.start(request, signal);
    // The supervisor may have rotated the log.
    await this.confirmRead(Math.min(from, await this.logSize()), signal);
    this.host.logger.info('netenv.dnsmasq.started', { user: user.name, config: this.paths.config });
  }

  /** Where it does not run, the next start tells. */
  private async tellHosts(signal: AbortSignal): Promise<void> {
    const { ref, user } = await this.find(signal);
    if (!(await this.isAlive(ref, signal))) {
      if ((await readIfThere(this.paths.config)) === undefined) return;
      throw this.host.errors.retryable(`tell dnsmasq of reservations: it does not run on ${BRIDGE}`, {
        code: 'NetworkFailed',
      });
    }
    if ((await this.logSize()) > MAX_LOG_BYTES) await truncate(this.paths.log, 0);
    // LOAD-BEARING ORDER: what dnsmasq says of a reading behind `from` is of a file at least as new as this one.
    await this.writeHosts(user);
    const from = await this.logSize();
    if ((await this.host.supervisor.signal(ref, 'SIGHUP')) === 'gone') {
      throw this.host.errors.retryable(`tell dnsmasq of reservations: it has ended`, { code: 'NetworkFailed' });
    }
    await this.confirmRead(from, signal);
  }

  private writeHosts(user: ServiceUser): Promise<void> {
    return writeWhole(this.paths.hosts, hostsOf(this.served()), { mode: HOSTS_MODE, groupId: user.groupId });
  }

  private async logSize(): Promise<number> {
    try {
      return (await stat(this.paths.log)).size;
    } catch {
      return 0;
    }
  }

  /** A reload that failed is told by dnsmasq's log alone. */
  private async confirmRead(from: number, signal: AbortSignal): Promise<void> {
    const { clock, errors } = this.host;
    const { ref } = await this.find(signal);
    const end = clock.monotonicMs() + READY_MS;
    for (;;) {
      const { state } = await this.host.supervisor.observe(ref, signal);
      const log = Buffer.from((await readIfThere(this.paths.log)) ?? '')
        .subarray(from)
        .toString();
      if (state !== 'alive') {
        throw errors.retryable(`run dnsmasq on ${BRIDGE}: ${lastWords(log) || 'it ended without a word'}`, {
          code: 'NetworkFailed',
        });
      }
      const outcome = reloadOutcome(log, this.paths.hosts);
      if (outcome?.ok === true) return;
      if (outcome !== undefined)
        throw errors.retryable(`have dnsmasq read the reservations: ${lastWords(outcome.line)}`);
      if (clock.monotonicMs() >= end) {
        throw errors.retryable(
          `have dnsmasq read the reservations: no word of it within ${(READY_MS / 1000).toString()} s`,
        );
      }
      await clock.sleep(POLL_MS, signal);
    }
  }

  /** In the guest's name; answers whether it went. */
  private async giveBack(lease: Lease): Promise<boolean> {
    const { clock, logger } = this.host;
    const server = gatewayOf(this.cidr);
    const packet = releasePacket({ ...lease, server });
    const end = clock.monotonicMs() + RELEASE_MS;
    for (let waited = 0; clock.monotonicMs() < end; waited += POLL_MS) {
      try {
        if (waited % RESEND_MS === 0) await this.options.send(packet, server, DHCP_SERVER_PORT);
      } catch (err) {
        logger.debug('netenv.lease.release.failed', { ...lease, err });
        return false;
      }
      await clock.sleep(POLL_MS, unhurried());
      if (!(await this.leases()).some((held) => held.mac === lease.mac && held.address === lease.address)) return true;
    }
    return false;
  }

  /** dnsmasq keeps its leases in memory, and reads the file at its start only. */
  private async cutOut(lease: Lease, ref: ProcessRef, alive: boolean): Promise<void> {
    const { user } = await this.find(unhurried());
    if (alive) await this.end(ref);
    const text = (await readIfThere(this.paths.leases)) ?? '';
    await writeWhole(this.paths.leases, withoutLease(text, lease), { mode: HOSTS_MODE, groupId: user.groupId });
    const config = await readIfThere(this.paths.config);
    if (alive && config !== undefined) await this.launch(config, unhurried());
  }

  private async end(ref: ProcessRef): Promise<void> {
    const { supervisor, errors } = this.host;
    for (const name of ['SIGTERM', 'SIGKILL'] as const) {
      await supervisor.signal(ref, name);
      if (await supervisor.waitGone(ref, STOP_MS, unhurried())) {
        await supervisor.forget(ref);
        return;
      }
    }
    throw errors.retryable(`end the dnsmasq of ${BRIDGE}: it is still there after SIGKILL`);
  }
}
