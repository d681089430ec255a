import type { Logger } from '../contracts/logger.js';

/** Lets a promise run on its own, on purpose; what it rejects with is logged once under `event`. */
export function detach(promise: Promise<unknown>, log: Logger, event: string): void {
  promise.catch((err: unknown) => {
    log.error(event, { err });
  });
}
