/**
 * Where the files of one life stand. Derived from the uid alone, so that they can be found again without a record;
 * written into the record all the same, because a socket's path depends on the run directory of that day.
 *
 * All are absolute. That a path is named says nothing of whether a file stands there.
 */
export interface VmPaths {
  /** `<state>/vms/<uid>`: the agent's own folder of this life. */
  readonly folder: string;
  /** `<folder>/guest`: the part that the VMM's own user may read. */
  readonly guestFolder: string;
  /** `<guest>/disk.raw`. */
  readonly rootDisk: string;
  /** `<guest>/seed.img`. */
  readonly seed: string;
  /** `<guest>/vmm.log`: standard output and error of the VMM, appended. */
  readonly vmmLog: string;
  /** `<folder>/vmm.pid`: pid, boot id and start time of the VMM. */
  readonly pidFile: string;
  /** `<folder>/serial.log`: the console's log. */
  readonly serialLog: string;
  /** `<folder>/keys`: the guest's SSH host keys. */
  readonly keysFolder: string;
  /** `<run>/<hash>`: a short folder for sockets. */
  readonly runFolder: string;
}
