/**
 * Commands that change what is declared of one VM, and wait until it is so.
 */
import { Args, Flags } from '@oclif/core';
import type { ActView } from '@eitri/protocol';
import { durationOf } from '../../app/flags.js';
import type { AdminClient } from '../../client/index.js';
import type { PlaceFlags } from './agent-command.js';
import { ClientCommand } from './client-command.js';
import { waitFor, type Goal } from './wait.js';

export const actArgs = { name: Args.string({ required: true, description: 'name of the VM' }) };

export const actFlags = {
  json: Flags.boolean({ description: 'print JSON: what was changed' }),
  wait: Flags.boolean({
    allowNo: true,
    description: 'wait until it is so (default: at a terminal only)',
  }),
  timeout: Flags.string({ default: '5m', helpValue: 'DURATION', description: 'how long to wait at most' }),
};

export interface ActFlags extends PlaceFlags {
  readonly json: boolean;
  readonly wait: boolean;
  readonly timeout: string;
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
      if (goal === undefined || !this.shallWait(flags)) return;
      await waitFor(client, { name: changed.id, uid: changed.uid, goal, timeoutMs }, signal);
      if (!flags.json) this.print(`${changed.id} is ${REACHED[goal]}`);
    });
  }

  private shallWait(flags: ActFlags): boolean {
    // oclif gives false for a flag that was not given, too; what was typed tells the two apart.
    const said = this.argv.some((word) => word === '--wait' || word === '--no-wait');
    return said ? flags.wait : process.stdout.isTTY;
  }
}

const REACHED: Readonly<Record<Goal, string>> = {
  running: 'running',
  stopped: 'stopped',
  deleted: 'shut down; its disk is kept until the tombstone grace ends',
};
