/**
 * What is said of a guest that nobody does anything to: live progress between its start and the moment at which its VMM
 * answers, one line at the end of that wait, and one each time that it stands still on a full disk and goes on.
 *
 * Owns what was seen the last time. The words go to events only: in the status they would change the report each second.
 */
import type { NewEvent, Observation, VmPhase } from '../contracts/index.js';

type News = Pick<NewEvent, 'type' | 'level' | 'message' | 'progress'>;

export class GuestWatch {
  private waiting = false;
  private still = false;

  /** `sinceMs`: how long its VMM is up, as far as it was watched. */
  look(observed: Observation, phase: VmPhase, sinceMs: number): News | undefined {
    const seconds = Math.floor(sinceMs / 1_000);
    // One that is asked to end while it starts is told of as one that ends.
    if (observed.state === 'starting' && phase === 'Starting') {
      this.waiting = true;
      const message = `starting: ${seconds} s since its VMM was started`;
      return { type: 'vm.boot', level: 'info', message, progress: 0 };
    }
    const wasStill = this.still;
    this.still = observed.state === 'paused' && observed.by === 'fullDisk';
    if (this.still && !wasStill) {
      const message = 'stands still: the file system under a disk of it is full';
      return { type: 'vm.paused', level: 'warn', message };
    }
    const came = this.waiting && observed.state === 'running';
    this.waiting = false;
    if (came) {
      return { type: 'vm.running', level: 'info', message: `running ${seconds} s after its VMM was started` };
    }
    if (wasStill && observed.state === 'running') {
      return { type: 'vm.resumed', level: 'info', message: 'goes on: there is room under its disk again' };
    }
    return undefined;
  }
}
