/**
 * control.json: the pinned backend, and this state directory's own id.
 *
 * One writer at a time; a value is answered for only once it is on disk. A file that can't be understood is an error at
 * every call, never an empty one: were the pin lost, another backend could be chosen for VMs that it did not make.
 */
import type { Random } from '@eitri/core/contracts';
import { KeyedMutex } from '@eitri/core/kit';
import { readIfThere, writeAtomically } from '../host/atomic-file.js';
import { stateBadError, stateWriteError } from './state-error.js';
import { controlFormat, formatStored, parseStored, type ControlState } from './state-schema.js';

const MAX_BYTES = 2 ** 20;
const ONE = 'control';

export class ControlFile {
  private readonly locks = new KeyedMutex();

  constructor(
    private readonly path: string,
    private readonly random: Random,
  ) {}

  /** Undefined before the first change. */
  readonly read = async (): Promise<ControlState | undefined> => {
    const text = await readIfThere(this.path, MAX_BYTES);
    if (text === undefined) return undefined;
    try {
      return parseStored(controlFormat, text);
    } catch (cause) {
      throw stateBadError(this.path, 'it can not be understood', cause);
    }
  };

  /** Applies a change to what is there, or to a first state, and writes it. Fields that nobody here knows stay. */
  readonly update = (change: (state: ControlState) => ControlState): Promise<ControlState> =>
    this.locks.run(ONE, async () => {
      const before = await this.read();
      const state = change(before ?? { version: 1, stateId: this.random.uuid() });
      const text = formatStored(state);
      if (before !== undefined && text === formatStored(before)) return state;
      try {
        await writeAtomically(this.path, text);
      } catch (cause) {
        throw stateWriteError('write the control state', this.path, cause);
      }
      return state;
    });
}
