import { Args, Flags } from '@oclif/core';
import { EXIT, exitError, parseDuration } from '@eitri/core/kit';
import type { EventView } from '@eitri/protocol';
import { formatEvent, localTime } from '../../app/event-printer.js';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmEvents extends ClientCommand {
  static override readonly summary = 'Print what happened to VMs since the agent started.';
  static override readonly description = `The newest thousand events, of one VM (also of one that is gone) or of all.${exitCodes('notFound', 'unreachable', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm events',
    '<%= config.bin %> vm events web-1 --follow',
    '<%= config.bin %> vm events --since 10m',
    '<%= config.bin %> vm events --json --follow',
  ];
  static override readonly args = { name: Args.string({ description: 'name or uid of a VM; without it, all' }) };
  static override readonly flags = {
    since: Flags.string({
      helpValue: 'TIME',
      description: 'only what is newer: a duration (10m) or a time (2026-01-31T10:00Z)',
    }),
    follow: Flags.boolean({ char: 'f', description: 'go on with each as it happens, until Ctrl-C' }),
    json: Flags.boolean({ description: 'print JSON, one object a line' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmEvents);
    const sinceMs = flags.since === undefined ? 0 : timeOf(flags.since, Date.now());
    await this.withAgent(flags, async (client, signal) => {
      for await (const event of client.events(args.name, flags.follow, signal)) {
        if (Date.parse(event.at) < sinceMs) continue;
        this.print(flags.json ? JSON.stringify(event) : line(event));
      }
    });
  }
}

/** Milliseconds since 1970. */
function timeOf(text: string, nowMs: number): number {
  const ago = parseDuration(text);
  if (ago !== undefined) return nowMs - ago;
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw exitError(EXIT.usage, `--since: want a duration like 10m, or a time like 2026-01-31T10:00Z, got "${text}"`);
}

const line = (event: EventView): string => formatEvent({ ...event, at: Date.parse(event.at) }, localTime);
