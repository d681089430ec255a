/**
 * All consoles of this host: one pump for each guest that is powered on, found by its uid.
 *
 * Owns the pumps' lives; `ensure` and `stop` of one guest are serial, so a pump that is let go is gone before the next
 * one connects. Knows no backend: how a console is reached is the source's.
 */
import { inject, injectable } from 'tsyringe';
import {
  CLOCK,
  CONSOLE_SOURCE,
  LOGGER,
  type Clock,
  type ConsoleAttach,
  type ConsoleSession,
  type ConsoleSource,
  type Logger,
  type PumpHooks,
  type VmUid,
} from '@eitri/core/contracts';
import { KeyedMutex, retryable } from '@eitri/core/kit';
import { nodeLogFiles, type LogFiles } from './log-file.js';
import { GuestPump, PUMP_LIMITS, type PumpLimits, type PumpState } from './pump.js';
import { endsWithin } from './quiet-sleep.js';
import { SERIAL_LOG_LIMITS, SerialLog, type SerialLogLimits } from './serial-log.js';

/** `none`: the guest is off, as far as its backend said. */
export type ConsoleState = 'none' | PumpState;

export interface ConsoleOptions {
  /** Where a guest's `serial.log` stands. */
  readonly logPathOf: (uid: VmUid) => string;
  readonly files?: LogFiles;
  readonly pumpLimits?: Partial<PumpLimits>;
  readonly logLimits?: Partial<SerialLogLimits>;
}

export const CONSOLE_OPTIONS = Symbol.for('eitri.console-options@1');

/** How long a log may take to reach its disk when its console is stopped. */
const CLOSE_LOG_MS = 5000;
/** How long a log may take to be read when its console is taken over. */
const READ_LOG_MS = 1000;

@injectable()
export class ConsoleManager implements PumpHooks {
  private readonly pumps = new Map<VmUid, GuestPump>();
  private readonly lives = new KeyedMutex();
  private readonly files: LogFiles;
  private readonly pumpLimits: PumpLimits;
  private readonly logLimits: SerialLogLimits;
  private leaving = false;

  constructor(
    @inject(CONSOLE_SOURCE) private readonly source: ConsoleSource,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly logger: Logger,
    @inject(CONSOLE_OPTIONS) private readonly options: ConsoleOptions,
  ) {
    this.files = options.files ?? nodeLogFiles;
    this.pumpLimits = { ...PUMP_LIMITS, ...options.pumpLimits };
    this.logLimits = { ...SERIAL_LOG_LIMITS, ...options.logLimits };
  }

  readonly ensure = async (uid: VmUid): Promise<void> => {
    await this.lives.run(uid, () => {
      if (!this.leaving && !this.pumps.has(uid)) this.makePump(uid).start();
      return Promise.resolve();
    });
  };

  /**
   * As `ensure`, for a guest that runs since before this agent: what it printed since its power-on, as far as its log
   * tells, is shown to viewers first. Waits for the log's disk, but not long: meanwhile nobody reads the console.
   */
  readonly adopt = async (uid: VmUid): Promise<void> => {
    await this.lives.run(uid, async () => {
      if (this.pumps.has(uid)) return;
      const logged = await this.readLog(uid);
      if (!this.leaving) this.makePump(uid).takeOver(logged);
    });
  };

  readonly stop = async (uid: VmUid): Promise<void> => {
    await this.stopWithin(uid, this.pumpLimits.drainMs, CLOSE_LOG_MS);
  };

  /**
   * Joins a guest's console. Throws, with a sentence for the operator, where there is none, where somebody types already
   * (and `force` is not set), or where too many look.
   */
  readonly attach = (uid: VmUid, options: ConsoleAttach): ConsoleSession => {
    const pump = this.pumps.get(uid);
    if (pump === undefined) throw retryable(`no console for ${uid}: the guest is not running`);
    return pump.attach(options);
  };

  /** The newest output: of this boot while the guest runs and has printed, else of what its log holds. */
  readonly tail = async (uid: VmUid, maxBytes: number): Promise<Buffer> => {
    const live = this.pumps.get(uid)?.newest(maxBytes);
    if (live !== undefined && live.length > 0) return live;
    return await this.files.readEnd(this.options.logPathOf(uid), maxBytes);
  };

  readonly state = (uid: VmUid): ConsoleState => this.pumps.get(uid)?.state ?? 'none';

  /**
   * For the agent's exit, which no guest notices: lets go of every console in good order, and starts no new one.
   * Resolves within `deadlineMs`.
   */
  readonly stopAll = async (deadlineMs: number): Promise<void> => {
    this.leaving = true;
    const drainMs = Math.min(this.pumpLimits.drainMs, deadlineMs / 2);
    const stops = Promise.all([...this.pumps.keys()].map((uid) => this.stopWithin(uid, drainMs, deadlineMs - drainMs)));
    if (!(await endsWithin(this.clock, deadlineMs, stops))) {
      this.logger.warn('console.exit.unfinished', { consoles: this.pumps.size });
    }
  };

  /** The end of a guest's log, before this agent adds to it; nothing where its disk does not answer. */
  private async readLog(uid: VmUid): Promise<Buffer> {
    let logged: Buffer = Buffer.alloc(0);
    const reading = this.files.readEnd(this.options.logPathOf(uid), this.pumpLimits.historyBytes).then(
      (bytes) => {
        logged = bytes;
      },
      (err: unknown) => {
        this.logger.warn('console.log.unreadable', { uid, err });
      },
    );
    if (!(await endsWithin(this.clock, READ_LOG_MS, reading))) this.logger.warn('console.log.slow', { uid });
    return logged;
  }

  private makePump(uid: VmUid): GuestPump {
    const { clock, files, source } = this;
    const logger = this.logger.child({ uid });
    const log = new SerialLog(this.options.logPathOf(uid), { files, clock, logger }, this.logLimits);
    const pump = new GuestPump(uid, { source, clock, logger, log }, this.pumpLimits);
    this.pumps.set(uid, pump);
    return pump;
  }

  private async stopWithin(uid: VmUid, drainMs: number, closeMs: number): Promise<void> {
    await this.lives.run(uid, async () => {
      const pump = this.pumps.get(uid);
      if (pump === undefined) return;
      try {
        await pump.stop(drainMs, closeMs);
      } finally {
        this.pumps.delete(uid);
      }
    });
  }
}
