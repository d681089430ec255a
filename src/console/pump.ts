/**
 * The one reader of one guest's serial console, from power-on until the guest is off.
 *
 * Owns the connection: never more than one, always drained, whatever log and viewers do; a VMM may stall its guest, or
 * lose output, while its console is not read. States: connecting ⇄ connected → stopped; an end of stream is no end (a
 * guest's reboot closes the line for a moment) until `stop`.
 *
 * `stop` half-closes and reads on to the end before it lets go: a socket closed with unread bytes in it is a reset, and
 * some VMMs never serve their console again after one.
 */
import type { Duplex } from 'node:stream';
import type { Clock, ConsoleAttach, ConsoleSession, ConsoleSource, Logger, VmUid } from '@eitri/core/contracts';
import { detach, doubling, errorLine, KIB, MIB, retryable } from '@eitri/core/kit';
import { Audience, type AudienceLimits } from './audience.js';
import { endsWithin, quietSleep } from './quiet-sleep.js';
import { bootNote, LINE_FEED, noteLine, reconnectNote, reopenNote, sinceBoot } from './log-notes.js';
import type { SerialLog } from './serial-log.js';
import type { Typing } from './viewer.js';

export type PumpState = 'connecting' | 'connected';

export interface PumpLimits extends AudienceLimits {
  /** How long what the socket still holds is read after `stop`. */
  readonly drainMs: number;
}

export const PUMP_LIMITS: PumpLimits = { historyBytes: 256 * KIB, lagBytes: MIB, viewers: 64, drainMs: 2000 };

/** Short at first: older VMMs drop what is printed while nobody is connected. */
const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
/** A connection that lived this long was a good one; one that ends sooner counts as a failure (two readers that evict each other). */
const SETTLED_MS = 5000;

export interface PumpDeps {
  readonly source: ConsoleSource;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly log: SerialLog;
}

interface Connection {
  readonly stream: Duplex;
  /** Counts it as gone, although the stream may not have said so. */
  readonly giveUp: () => void;
}

export class GuestPump {
  private readonly audience: Audience;
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();
  private connection: Connection | undefined;
  private connections = 0;
  /** Said in the log before the next bytes: a reconnection after which nothing is printed is not worth a line. */
  private gapNote: string | undefined;
  private adopted = false;
  /** Typed while nothing was connected. At most one entry a viewer. */
  private waiting: Typing[] = [];
  /** Writers whose bytes the guest has not taken yet. At most one entry a viewer. */
  private undrained: (() => void)[] = [];

  constructor(
    private readonly uid: VmUid,
    private readonly deps: PumpDeps,
    private readonly limits: PumpLimits = PUMP_LIMITS,
  ) {
    this.audience = new Audience(
      (typing) => {
        this.type(typing);
      },
      limits,
      (who) => {
        deps.logger.info('console.viewer.dropped', { who });
      },
    );
  }

  get state(): PumpState {
    return this.connection === undefined ? 'connecting' : 'connected';
  }

  /** Of a guest that boots now. Called once, if `takeOver` is not. */
  start(): void {
    this.deps.log.noteBoot(bootNote(this.time()));
    this.running = this.run();
  }

  /** Of a guest that a former agent pumped, whose log ends with `logged`. Called once, if `start` is not. */
  takeOver(logged: Buffer): void {
    this.adopted = true;
    const former = sinceBoot(logged);
    if (former.length > 0) {
      const endsLine = former.at(-1) === LINE_FEED;
      this.audience.remember(Buffer.concat([former, noteLine(reopenNote(this.time()), endsLine)]));
    }
    this.running = this.run();
  }

  attach(options: ConsoleAttach): ConsoleSession {
    if (this.stopping.signal.aborted) throw retryable(`the console of ${this.uid} is closing`);
    return this.audience.attach(options);
  }

  /** The newest output of this boot. */
  newest(maxBytes: number): Buffer {
    return this.audience.newest(maxBytes);
  }

  /** Drains, lets go, ends the viewers, closes the log: in this order, and each within its bound. Called once. */
  async stop(drainMs: number, closeMs: number): Promise<void> {
    this.stopping.abort(new Error('the console is stopped'));
    this.connection?.stream.end();
    if (!(await endsWithin(this.deps.clock, drainMs, this.running))) {
      this.deps.logger.warn('console.drain.unfinished', { drainMs });
      this.connection?.giveUp();
      await this.running;
    }
    this.audience.endAll({ reason: 'stopped' });
    for (const typing of this.waiting.splice(0)) typing.done();
    await this.deps.log.close(closeMs);
  }

  /** Never rejects. */
  private async run(): Promise<void> {
    const { clock, logger } = this.deps;
    const { signal } = this.stopping;
    for (let failures = 0; !signal.aborted;) {
      try {
        const stream = await this.open();
        const since = clock.monotonicMs();
        await this.serve(stream);
        failures = clock.monotonicMs() - since >= SETTLED_MS ? 1 : failures + 1;
      } catch (error) {
        failures++;
        logger.debug('console.open.failed', { failures, reason: errorLine(error) });
      }
      await quietSleep(clock, doubling(failures, FIRST_RETRY_MS, LAST_RETRY_MS), signal);
    }
  }

  /** Opens the line. Returns at once when the pump is stopped, also from a source that does not heed its signal. */
  private async open(): Promise<Duplex> {
    // A signal of its own: the pump's is aborted while the stream is still drained.
    const attempt = new AbortController();
    const stop = this.stopping.signal;
    stop.throwIfAborted();
    return await new Promise<Duplex>((resolve, reject) => {
      const giveUp = (): void => {
        const reason = stop.reason instanceof Error ? stop.reason : new Error('stopped');
        attempt.abort(reason);
        reject(reason);
      };
      stop.addEventListener('abort', giveUp, { once: true });
      const opening = this.deps.source.open(this.uid, attempt.signal).then((stream) => {
        if (stop.aborted) detach(this.letGo(stream), this.deps.logger, 'console.late.failed');
        else resolve(stream);
      });
      opening.catch(reject).finally(() => {
        stop.removeEventListener('abort', giveUp);
      });
    });
  }

  /** Reads to the end of the stream; resolves when it is closed. */
  private async serve(stream: Duplex): Promise<void> {
    const { logger } = this.deps;
    await new Promise<void>((resolve) => {
      this.connected({
        stream,
        giveUp: () => {
          stream.destroy();
          resolve();
        },
      });
      stream.on('data', (chunk: Buffer) => {
        this.received(chunk);
      });
      stream.on('drain', () => {
        this.drained();
      });
      stream.on('error', (err) => {
        logger.debug('console.stream.failed', { err });
      });
      // Its end was read: nothing unread is left that a close could throw away.
      stream.once('end', () => stream.destroy());
      stream.once('close', resolve);
      if (stream.closed) resolve();
    });
    this.connection = undefined;
    // What was on its way to the guest went down with the line.
    this.drained();
    logger.debug('console.disconnected');
  }

  private connected(connection: Connection): void {
    this.connection = connection;
    this.connections++;
    if (this.connections > 1) this.gapNote = reconnectNote(this.time());
    else if (this.adopted) this.deps.log.noteIfResumed(reopenNote(this.time()));
    this.deps.logger.debug('console.connected', { connections: this.connections });
    for (const typing of this.waiting.splice(0)) this.type(typing);
    // Stopped in the moment between the opening and here: then nobody else half-closes.
    if (this.stopping.signal.aborted) connection.stream.end();
  }

  private time(): string {
    return new Date(this.deps.clock.now()).toISOString();
  }

  /** For every read of a few bytes: nothing here may cost more than the chunk. */
  private received(chunk: Buffer): void {
    if (this.gapNote !== undefined) {
      this.deps.log.note(this.gapNote);
      this.gapNote = undefined;
    }
    this.deps.log.append(chunk);
    this.audience.publish(chunk);
  }

  private type(typing: Typing): void {
    const stream = this.connection?.stream;
    if (!typing.wanted()) typing.done();
    else if (stream?.writable !== true) this.waiting.push(typing);
    else if (stream.write(typing.chunk)) typing.done();
    else this.undrained.push(typing.done);
  }

  private drained(): void {
    for (const done of this.undrained.splice(0)) done();
  }

  /** Lets go of a stream that came too late to be served. */
  private async letGo(stream: Duplex): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      stream.once('close', resolve);
    });
    stream.on('error', () => undefined);
    stream.once('end', () => stream.destroy());
    stream.resume();
    stream.end();
    if (!(await endsWithin(this.deps.clock, this.limits.drainMs, closed))) stream.destroy();
  }
}
