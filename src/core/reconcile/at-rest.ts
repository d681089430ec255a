/**
 * When a glance can stand for a pass, and whether it brings news. Pure.
 */
import type { Observation } from '../contracts/index.js';
import type { Rest } from './actions.js';

/** Whether only the backend can bring news of it: it is where it shall be, or was given up. */
export const isQuiet = ({ phase, reason }: Rest): boolean =>
  reason === undefined ? phase === 'Running' || phase === 'Stopped' : phase === 'Failed';

/** Observations are small and flat: no text is made of them to compare them. */
export function sameObservation(a: Observation, b: Observation): boolean {
  if (a === b) return true;
  switch (a.state) {
    case 'absent':
      return b.state === 'absent';
    case 'exited':
      return b.state === 'exited' && a.code === b.code && a.signal === b.signal;
    case 'starting':
    case 'running':
    case 'stopping':
      return a.state === b.state && a.pid === b.pid;
    case 'paused':
      return b.state === 'paused' && a.pid === b.pid && a.by === b.by;
    case 'unknown':
      return false;
  }
}
