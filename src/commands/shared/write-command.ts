/**
 * Commands that hand manifests in: the agent writes them into its folder, all or, when one is refused, none.
 */
import { Flags } from '@oclif/core';
import { ADMIN_LIMITS } from '@eitri/protocol';
import type { PlaceFlags } from './agent-command.js';
import { durationOf } from '../../app/flags.js';
import { ClientCommand } from './client-command.js';
import { readManifests } from './manifest-input.js';
import { REACHED, waitFor } from './wait.js';
import { shallWait, waitFlags, type WaitFlags } from './wait-flags.js';

export const writeFlags = {
  file: Flags.string({
    char: 'f',
    required: true,
    helpValue: 'FILE',
    description: 'YAML or JSON with one or more documents; - reads standard input',
  }),
  json: Flags.boolean({ description: 'print JSON: what was changed' }),
  ...waitFlags,
};

export interface WriteFlags extends PlaceFlags, WaitFlags {
  readonly file: string;
  readonly json: boolean;
}

export abstract class WriteCommand extends ClientCommand {
  protected async write(mode: 'create' | 'apply', flags: WriteFlags): Promise<void> {
    const text = await readManifests(flags.file, ADMIN_LIMITS.manifestBytes);
    const timeoutMs = durationOf(flags.timeout, '--timeout');
    await this.withAgent(flags, async (client, signal) => {
      const written = await client.write(text, mode, signal);
      if (flags.json) this.printJson(written);
      else this.print(written.message);
      if (!shallWait(flags, this.argv)) return;
      const end = performance.now() + timeoutMs;
      for (const { id, uid, power } of written.vms) {
        if (uid === undefined || power === undefined) continue;
        const left = Math.max(0, end - performance.now());
        await waitFor(client, { name: id, uid, goal: power, timeoutMs: left }, signal);
        if (!flags.json) this.print(`${id} is ${REACHED[power]}`);
      }
    });
  }
}
