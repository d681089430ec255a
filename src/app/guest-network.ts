/**
 * The guests' network of one run: a network plugin's two halves, and the order in which its host-wide half is driven.
 *
 *     composed ── check ──► fit ── raise ──► up ── keep (now and then) ── close
 *
 * Until `raise` nothing on the host is touched, so that whatever can refuse the start does so before. What stands is left
 * standing at the end: guests outlive the agent.
 */
import type {
  Clock,
  EventSink,
  HostNetwork,
  LoadedRecord,
  Logger,
  LostReservation,
  NetworkBackend,
  Reservation,
  VmRecord,
} from '@eitri/core/contracts';
import { errorLine, EXIT, isPermanent, isVmUid, natMac, systemCode, told, withExitCode } from '@eitri/core/kit';
import type { GuestCidrFile } from '../state/index.js';

/** How often drift is looked for, in milliseconds. */
const CHECK_MS = 15_000;

export interface GuestNetworkPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventSink;
  readonly cidrFile: GuestCidrFile;
  /** This boot of the host. */
  readonly bootId: string;
}

export class GuestNetwork {
  /** What could not be mended, as it was told: not told again at each look. */
  private trouble: string | undefined;
  /** One change of the host at a time: an operator's repair waits for the one that comes now and then. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    readonly name: string,
    private readonly backend: Pick<NetworkBackend, 'network' | 'hostNetwork'>,
    private readonly ports: GuestNetworkPorts,
  ) {}

  get network(): NetworkBackend['network'] {
    return this.backend.network;
  }

  get host(): HostNetwork {
    return this.backend.hostNetwork;
  }

  /** Whether this host can have it. Changes nothing. */
  async check(signal: AbortSignal): Promise<void> {
    await staged(this.name, async () => {
      await this.host.verifyNetworks(signal);
      await this.host.checkUplink(signal);
    });
  }

  /** Makes it true, with the addresses of all records, and lets DHCP answer only then. */
  async raise(records: readonly LoadedRecord[], signal: AbortSignal): Promise<void> {
    await staged(this.name, async () => {
      await this.host.ensureBridge(signal);
      await this.ports.cidrFile.keep(await this.host.guestCidr());
      await this.host.replayReservations(reservationsOf(records, this.ports.bootId), signal);
      await this.host.startDhcp(signal);
    });
  }

  /** Puts back what drifted, and tells of each thing. */
  repair(signal: AbortSignal): Promise<readonly string[]> {
    return this.alone(async () => {
      const mended = await this.host.repair(signal);
      this.trouble = undefined;
      for (const sentence of mended) {
        this.ports.log.warn('network.repaired', { plugin: this.name, what: sentence });
        this.ports.events.emit({ type: 'network.repaired', level: 'warn', message: `network: ${sentence}` });
      }
      return mended;
    });
  }

  /** Takes all of it down. Only while no guest runs. */
  async teardown(signal: AbortSignal): Promise<void> {
    await this.alone(() => this.host.teardown(signal));
  }

  /** Looks for drift until the signal; what can't be mended is told once, and tried again. */
  async keep(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.ports.clock.sleep(CHECK_MS, signal);
        await this.repair(signal);
      } catch (err) {
        if (signal.aborted) return;
        this.tell(err);
      }
    }
  }

  /** Waits for what goes on, and lets go. Never rejects. */
  async close(): Promise<void> {
    await this.last;
    await this.host.close();
  }

  private tell(err: unknown): void {
    const line = errorLine(err);
    if (line === this.trouble) return;
    this.trouble = line;
    this.ports.log.error('network.repair.failed', { plugin: this.name, err });
    this.ports.events.emit({
      type: 'network.repair.failed',
      level: 'error',
      message: `network: could not be put right, and is tried again: ${line}`,
    });
  }

  private alone<T>(work: () => Promise<T>): Promise<T> {
    const next = this.last.then(work);
    this.last = next.catch(() => undefined);
    return next;
  }
}

/** Those that can be read. */
export const recordsOf = (loaded: readonly LoadedRecord[]): readonly VmRecord[] =>
  loaded.flatMap((entry) => (entry.kind === 'record' ? [entry.record] : []));

/**
 * What DHCP has to answer by. A VMM that was started by an agent which died before it had written the address down runs
 * with a reservation that no record tells: it is looked for, as that of a record that can't be read.
 */
export function reservationsOf(
  loaded: readonly LoadedRecord[],
  bootId: string,
): readonly (Reservation | LostReservation)[] {
  return loaded.flatMap((entry) => {
    if (entry.kind === 'unreadable') return isVmUid(entry.uid) ? [{ uid: entry.uid, mac: natMac(entry.uid) }] : [];
    const { uid, mac, address, intent } = entry.record;
    if (address !== undefined) return [{ uid, mac, address }];
    const mayRun = entry.record.bootId === bootId || (intent?.step === 'boot' && intent.bootId === bootId);
    return mayRun ? [{ uid, mac }] : [];
  });
}

/** Trouble of the guests' network, told with its plugin's name. */
export class GuestNetworkError extends Error {
  constructor(name: string, cause: unknown) {
    super(`guest network ${name} can't be used`, { cause });
  }
}

/** What goes wrong before a guests' network is up, with its exit code. */
export async function staged<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const forbidden = systemCode(cause) === 'EPERM';
    // The tool's own words only hide what to do about it.
    if (forbidden && cause instanceof Error) told(cause);
    throw withExitCode(
      new GuestNetworkError(name, cause),
      forbidden ? EXIT.notPermitted : isPermanent(cause) ? EXIT.badConfiguration : EXIT.tryAgain,
    );
  }
}

/**
 * A plugin's logger that an operator hears too: a warning or an error whose fields have a `why`, a sentence, is an event,
 * with its `next`, the step to take, where it has one. At a terminal nothing else of the log is seen.
 */
export function heardLogger(log: Logger, events: EventSink): Logger {
  const heard =
    (level: 'warn' | 'error'): Logger['warn'] =>
    (event, fields) => {
      log[level](event, fields);
      const { why, next } = fields ?? {};
      if (typeof why !== 'string') return;
      const message = `network: ${why}${typeof next === 'string' ? `; ${next}` : ''}`;
      events.emit({ type: 'network.warning', level, message });
    };
  return {
    debug: log.debug,
    info: log.info,
    warn: heard('warn'),
    error: heard('error'),
    child: (fields) => heardLogger(log.child(fields), events),
  };
}
