/**
 * What is said of a VMM between its start and the moment at which it answers: live progress, and one line at its end.
 *
 * Owns whether that wait was seen. The words go to events only: in the status they would change the report each second.
 */
import type { NewEvent, Observation, VmPhase } from '../contracts/index.js';

export class BootWatch {
  private waiting = false;

  /** `sinceMs`: how long its VMM is up, as far as it was watched. */
  look(
    observed: Observation,
    phase: VmPhase,
    sinceMs: number,
  ): Pick<NewEvent, 'type' | 'message' | 'progress'> | undefined {
    const seconds = Math.floor(sinceMs / 1_000);
    // One that is asked to end while it starts is told of as one that ends.
    if (observed.state === 'starting' && phase === 'Starting') {
      this.waiting = true;
      return { type: 'vm.boot', message: `starting: ${seconds} s since its VMM was started`, progress: 0 };
    }
    const came = this.waiting && observed.state === 'running';
    this.waiting = false;
    return came ? { type: 'vm.running', message: `running ${seconds} s after its VMM was started` } : undefined;
  }
}
