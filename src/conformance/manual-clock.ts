/**
 * A clock that moves only when a test says so. Sleepers wake in the order of their times.
 */
import type { Clock } from '@eitri/core/contracts';

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** A `Clock` that stands until `advance` moves it; sleepers wake in the order of their times. */
export class ManualClock implements Clock {
  private elapsedMs = 0;
  private offsetMs: number;
  private sleepers: Sleeper[] = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.offsetMs = startMs;
  }

  readonly now = (): number => this.offsetMs + this.elapsedMs;
  readonly monotonicMs = (): number => this.elapsedMs;

  readonly sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.sleepers = this.sleepers.filter((s) => s !== sleeper);
        reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
      };
      const sleeper: Sleeper = {
        dueMs: this.elapsedMs + Math.max(0, ms),
        wake: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      signal.addEventListener('abort', leave, { once: true });
      this.sleepers.push(sleeper);
    });
  };

  /** How many sleep. */
  get sleeping(): number {
    return this.sleepers.length;
  }

  /** Moves time on, waking each sleeper at its own moment and letting it run before the next one wakes. */
  async advance(ms: number): Promise<void> {
    const end = this.elapsedMs + ms;
    for (;;) {
      await settle();
      const next = this.sleepers.filter((s) => s.dueMs <= end).sort((a, b) => a.dueMs - b.dueMs)[0];
      if (next === undefined) break;
      this.elapsedMs = Math.max(this.elapsedMs, next.dueMs);
      this.sleepers = this.sleepers.filter((s) => s !== next);
      next.wake();
    }
    this.elapsedMs = end;
    await settle();
  }

  /** The wall clock jumps; nobody sleeps shorter or longer for it. */
  jump(ms: number): void {
    this.offsetMs += ms;
  }
}

/** Lets everything that is ready run: promise jobs, then the event loop's turn. */
async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve));
}
