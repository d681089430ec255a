import { Args, Flags } from '@oclif/core';
import type { EventView } from '@eitri/protocol';
import { formatEvent, localTime } from '../../app/event-printer.js';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmEvents extends ClientCommand {
  static override readonly summary = 'Print what happened to VMs since the agent started.';
  static override readonly description = `The newest thousand events, of one VM or of all.${exitCodes('notFound', 'unreachable', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm events',
    '<%= config.bin %> vm events web-1 --follow',
    '<%= config.bin %> vm events --json --follow',
  ];
  static override readonly args = { name: Args.string({ description: 'name or uid of a VM; without it, all' }) };
  static override readonly flags = {
    follow: Flags.boolean({ char: 'f', description: 'go on with each as it happens, until Ctrl-C' }),
    json: Flags.boolean({ description: 'print JSON, one object a line' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmEvents);
    await this.withAgent(flags, async (client, signal) => {
      for await (const event of client.events(args.name, flags.follow, signal)) {
        this.print(flags.json ? JSON.stringify(event) : line(event));
      }
    });
  }
}

const line = (event: EventView): string => formatEvent({ ...event, at: Date.parse(event.at) }, localTime);
