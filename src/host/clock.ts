/**
 * The real time and real chance. Everybody else takes the contracts.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock, Random } from '@eitri/core/contracts';

/** A longer timer fires at once: Node keeps 31 bits of milliseconds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class SystemClock implements Clock {
  readonly now = (): number => Date.now();
  readonly monotonicMs = (): number => performance.now();

  readonly sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    const end = performance.now() + ms;
    let left = Math.max(0, ms);
    do {
      await once(Math.min(left, LONGEST_TIMER_MS), signal);
      left = end - performance.now();
    } while (left >= 1);
  };
}

function once(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(reasonOf(signal));
      return;
    }
    const leave = (): void => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    }, ms);
    signal.addEventListener('abort', leave, { once: true });
  });
}

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new Error('aborted', { cause: signal.reason });

export class SystemRandom implements Random {
  readonly uuid = (): string => randomUUID();
  readonly fraction = (): number => Math.random();
  readonly secretBytes = (count: number): Uint8Array => randomBytes(count);
}
