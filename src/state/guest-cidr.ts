/**
 * `guest-cidr`: the subnet that this host's guests have their addresses in. A network plugin chose it once; from then on
 * it comes before every flag, because guests can't follow a change.
 *
 * Owns the file. What is in it is judged by the plugin: an emptied file is a subnet that can't be used, never none.
 */
import { readIfThere, removeDurably, writeAtomically } from '../host/atomic-file.js';
import { stateWriteError } from './state-error.js';

const MAX_BYTES = 1024;

export class GuestCidrFile {
  constructor(private readonly path: string) {}

  /** Undefined: no guests' network was made yet. */
  readonly read = async (): Promise<string | undefined> => (await readIfThere(this.path, MAX_BYTES))?.trim();

  /** Idempotent; what stands there already is not written again. */
  readonly keep = async (cidr: string): Promise<void> => {
    try {
      if ((await this.read()) !== cidr) await writeAtomically(this.path, `${cidr}\n`);
    } catch (cause) {
      throw stateWriteError('keep the guest subnet', this.path, cause);
    }
  };

  /** Lets the next start choose anew. Only while no guest has an address in it. Idempotent. */
  readonly forget = async (): Promise<void> => {
    try {
      await removeDurably(this.path);
    } catch (cause) {
      throw stateWriteError('forget the guest subnet', this.path, cause);
    }
  };
}
