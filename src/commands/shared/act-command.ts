/**
 * Commands that change what is declared of one VM, and wait until it is so.
 */
import { Args, Flags } from '@oclif/core';
import type { ActView } from '@eitri/protocol';
import { durationOf } from '../../app/flags.js';
import type { AdminClient } from '../../client/index.js';
import type { PlaceFlags } from './agent-command.js';
import { ClientCommand } from './client-command.js';
import { REACHED, waitFor, type Goal } from './wait.js';
import { shallWait, waitFlags, type WaitFlags } from './wait-flags.js';

export const actArgs = { name: Args.string({ required: true, description: 'name of the VM' }) };

export const actFlags = {
  json: Flags.boolean({ description: 'print JSON: what was changed' }),
  ...waitFlags,
};

export interface ActFlags extends PlaceFlags, WaitFlags {
  readonly json: boolean;
}

export abstract class ActCommand extends ClientCommand {
  protected async act(
    of: { readonly goal: Goal | undefined; readonly flags: ActFlags },
    change: (client: AdminClient, signal: AbortSignal) => Promise<ActView>,
  ): Promise<void> {
    const { goal, flags } = of;
    const timeoutMs = durationOf(flags.timeout, '--timeout');
    await this.withAgent(flags, async (client, signal) => {
      const changed = await change(client, signal);
      if (flags.json) this.printJson(changed);
      else this.print(changed.message);
      if (goal === undefined || !shallWait(flags, this.argv)) return;
      await waitFor(client, { name: changed.id, uid: changed.uid, goal, timeoutMs }, signal);
      if (!flags.json) this.print(`${changed.id} is ${REACHED[goal]}`);
    });
  }
}
