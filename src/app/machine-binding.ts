/**
 * Notices a state directory that was copied to another machine: its agent would run the same VMs a second time, with the
 * same disks' contents, MACs and host keys. A machine that has no id of its own is not told apart from any other.
 */
import { EXIT, exitError } from '@eitri/core/kit';

/** Throws where the state was made on another machine and nobody said that this one takes over. */
export function checkMachine(of: {
  readonly stateDir: string;
  /** The machine that the state belongs to, as far as it is recorded. */
  readonly recorded: string | undefined;
  readonly machineId: string | undefined;
  readonly adopt: boolean;
}): void {
  const { stateDir, recorded, machineId, adopt } = of;
  if (recorded === undefined || machineId === undefined || recorded === machineId || adopt) return;
  throw exitError(
    EXIT.badConfiguration,
    `${stateDir} belongs to another machine (id ${recorded}; this one is ${machineId}): if it is a copy, take another --state-dir here, or every VM runs twice with the same addresses; if it was moved, or the machine got a new id, start once with --adopt`,
  );
}
