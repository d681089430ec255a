import { Args, Flags } from '@oclif/core';
import { textColumns } from '../shared/agent-command.js';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';
import { vmText } from '../shared/vm-text.js';

export default class VmShow extends ClientCommand {
  static override readonly summary = 'Show everything that is known of one VM.';
  static override readonly description = `Its state and what it waits for, its last failure and exit, its resources, and where its files stand.${exitCodes('notFound', 'unreachable', 'notPermitted')}`;
  static override readonly examples = ['<%= config.bin %> vm show web-1', '<%= config.bin %> vm show web-1 --json'];
  static override readonly args = { name: Args.string({ required: true, description: 'name or uid of the VM' }) };
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmShow);
    const vm = await this.withAgent(flags, (client, signal) => client.vm(args.name, signal));
    if (flags.json) this.printJson(vm);
    else this.print(vmText(vm, textColumns()));
  }
}
