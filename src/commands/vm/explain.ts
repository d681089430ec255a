import { Args, Flags } from '@oclif/core';
import { localTime } from '../../app/event-printer.js';
import { textColumns } from '../shared/agent-command.js';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';
import { explainText } from '../shared/explain-text.js';

export default class VmExplain extends ClientCommand {
  static override readonly summary = 'Say why a VM is not as it should be.';
  static override readonly description = `The reason, which check said no and what to do about it; the last step and its error, cause by cause; what follows and when; what its hypervisor and its console said last; its last events. Nothing is changed by asking.${exitCodes('notFound', 'unreachable', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm explain web-1',
    '<%= config.bin %> vm explain web-1 --json',
  ];
  static override readonly args = { name: Args.string({ required: true, description: 'name or uid of the VM' }) };
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmExplain);
    const vm = await this.withAgent(flags, (client, signal) => client.explain(args.name, signal));
    if (flags.json) this.printJson(vm);
    else this.print(explainText(vm, textColumns(), localTime));
  }
}
