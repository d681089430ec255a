/**
 * The log of one guest's console on disk: appended over all its boots and over agent restarts, rotated once.
 *
 * Owns `serial.log` and `serial.log.1`, together never over twice the limit. `append` never waits: bytes go into a bounded
 * store, and one writer carries them to the disk. When the disk is slow or full the store fills, further output is left
 * out, and the log says at that place how much. What is in the store already is tried again until `close`.
 *
 * Lines of its own start with `--- eitri:`; everything else in the file is the guest's, byte for byte.
 */
import type { Clock, Logger } from '@eitri/core/contracts';
import { doubling, KIB, MIB } from '@eitri/core/kit';
import { ByteRing } from './byte-ring.js';
import type { LogFile, LogFiles } from './log-file.js';
import { LINE_FEED, noteLine } from './log-notes.js';
import { endsWithin, quietSleep } from './quiet-sleep.js';

export interface SerialLogLimits {
  /** Size at which the log is rotated; at most twice this stands on disk. */
  readonly fileBytes: number;
  /** What may wait for the disk. */
  readonly pendingBytes: number;
}

export const SERIAL_LOG_LIMITS: SerialLogLimits = { fileBytes: 4 * MIB, pendingBytes: MIB };

const BATCH_BYTES = 256 * KIB;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 30_000;

export interface SerialLogDeps {
  readonly files: LogFiles;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class SerialLog {
  private readonly pending: ByteRing;
  private readonly closing = new AbortController();
  private file: LogFile | undefined;
  private sizeBytes = 0;
  private writer: Promise<void> | undefined;
  private resumeNote: string | undefined;
  /** The note is written although nothing waits to be written after it. */
  private noteIsDue = false;
  /** Bytes left out since the last time the log said so. */
  private leftOutBytes = 0;
  private endsLine = true;

  constructor(
    private readonly path: string,
    private readonly deps: SerialLogDeps,
    private readonly limits: SerialLogLimits = SERIAL_LOG_LIMITS,
  ) {
    this.pending = new ByteRing(limits.pendingBytes);
  }

  /** What waits to be given to the disk; not counting what the disk is taking now. */
  get waitingBytes(): number {
    return this.pending.length;
  }

  /** Takes what the guest printed. Never waits and never throws. */
  append(chunk: Uint8Array): void {
    if (this.closing.signal.aborted) return;
    if (this.leftOutBytes > 0) this.sayLeftOut();
    const taken = this.leftOutBytes > 0 ? 0 : Math.min(chunk.length, this.pending.room);
    if (taken > 0) this.store(taken === chunk.length ? chunk : chunk.subarray(0, taken));
    this.leftOutBytes += chunk.length - taken;
    this.wake();
  }

  /** Adds a line of the agent's own, at this place in the guest's output. */
  note(text: string): void {
    this.append(noteLine(text, this.endsLine));
  }

  /** A line that is only said if something stands in the log already, before the first output that this agent adds. */
  noteIfResumed(text: string): void {
    this.resumeNote = text;
  }

  /**
   * The same, but said at once: the next agent must not take the boot before for this one, though this one has printed
   * nothing yet.
   */
  noteBoot(text: string): void {
    this.resumeNote = text;
    this.noteIsDue = true;
    this.wake();
  }

  /**
   * Writes what waits, tries a failing disk once more, and closes the file; resolves within `timeoutMs` whatever the disk
   * does. Later appends are ignored. Idempotent.
   */
  async close(timeoutMs: number): Promise<void> {
    this.sayLeftOut();
    this.wake();
    this.closing.abort();
    const written = (this.writer ?? Promise.resolve()).then(() => this.closeFile());
    if (!(await endsWithin(this.deps.clock, timeoutMs, written))) {
      this.deps.logger.warn('console.log.unfinished', { path: this.path, waitingBytes: this.pending.length });
    }
  }

  private store(bytes: Uint8Array): void {
    this.pending.push(bytes);
    this.endsLine = bytes[bytes.length - 1] === LINE_FEED;
  }

  /** Only once half of the store is free again: else a flood would make one such line of every second read. */
  private sayLeftOut(): void {
    if (this.leftOutBytes === 0 || this.pending.room < this.limits.pendingBytes / 2) return;
    const bytes = this.leftOutBytes;
    this.leftOutBytes = 0;
    this.store(noteLine(`${bytes} bytes are missing here, the disk was too slow or full`, this.endsLine));
    this.deps.logger.warn('console.log.left-out', { path: this.path, bytes });
  }

  private wake(): void {
    if (this.writer !== undefined || (this.pending.length === 0 && !this.noteIsDue)) return;
    this.writer = this.work();
  }

  /** Never rejects: what goes wrong with the disk is logged and tried again. */
  private async work(): Promise<void> {
    while (this.pending.length > 0 || this.noteIsDue) {
      this.noteIsDue = false;
      if (await this.write(this.pending.take(BATCH_BYTES))) this.sayLeftOut();
      else this.pending.clear();
    }
    // In the same turn as the last look: what comes later finds no writer, and wakes one.
    this.writer = undefined;
  }

  /** Whether it was written; `false` only when the log closes over a disk that refuses. */
  private async write(batch: Buffer): Promise<boolean> {
    let rest = batch;
    for (let failures = 0; rest.length > 0 || this.resumeNote !== undefined;) {
      const lastTry = this.closing.signal.aborted;
      try {
        const file = await this.open();
        if (this.resumeNote !== undefined) {
          if (this.sizeBytes > 0) rest = Buffer.concat([noteLine(this.resumeNote, file.endsLine), rest]);
          this.resumeNote = undefined;
          if (rest.length === 0) break;
        }
        const part = rest.subarray(0, this.limits.fileBytes);
        const target = this.sizeBytes + part.length > this.limits.fileBytes ? await this.rotate() : file;
        const count = await target.append(part);
        if (count === 0) throw new Error('the file took no bytes');
        this.sizeBytes += count;
        rest = rest.subarray(count);
        if (failures > 0) this.deps.logger.info('console.log.recovered', { path: this.path });
        failures = 0;
      } catch (err) {
        failures++;
        if (failures === 1) this.deps.logger.warn('console.log.failed', { path: this.path, err });
        await this.closeFile();
        if (lastTry) return false;
        await quietSleep(this.deps.clock, doubling(failures, FIRST_RETRY_MS, LAST_RETRY_MS), this.closing.signal);
      }
    }
    return true;
  }

  private async open(): Promise<LogFile> {
    if (this.file === undefined) {
      this.file = await this.deps.files.open(this.path);
      this.sizeBytes = this.file.sizeBytes;
    }
    return this.file;
  }

  private async rotate(): Promise<LogFile> {
    await this.closeFile();
    await this.deps.files.rotate(this.path, this.limits.fileBytes);
    return await this.open();
  }

  private async closeFile(): Promise<void> {
    const file = this.file;
    this.file = undefined;
    try {
      await file?.close();
    } catch (err) {
      this.deps.logger.warn('console.log.close.failed', { path: this.path, err });
    }
  }
}
