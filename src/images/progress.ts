/**
 * Progress for people: at most some times a second, and always the first and the last word of a step.
 */
import type { Clock, ImageProgress } from '@eitri/core/contracts';

const EVERY_MS = 250;

/** Wraps a listener. What it throws is swallowed: a broken display stops no download. */
export function throttled(
  clock: Clock,
  listener: (progress: ImageProgress) => void,
): (progress: ImageProgress) => void {
  let step: ImageProgress['step'] | undefined;
  let saidAt = 0;
  return (progress) => {
    const now = clock.monotonicMs();
    const last = progress.doneBytes === progress.totalBytes;
    if (progress.step === step && !last && now - saidAt < EVERY_MS) return;
    step = progress.step;
    saidAt = now;
    try {
      listener(progress);
    } catch {
      // See above.
    }
  };
}
