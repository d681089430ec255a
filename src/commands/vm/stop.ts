import { ActCommand, actArgs, actFlags } from '../shared/act-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmStop extends ActCommand {
  static override readonly summary = 'Declare a VM stopped.';
  static override readonly description = `Sets power to stopped in the VM's document of the manifest folder; the agent shuts the guest down, first by its power button. Its disk and address are kept.${exitCodes('badInput', 'notFound', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = ['<%= config.bin %> vm stop web-1', '<%= config.bin %> vm stop web-1 --no-wait'];
  static override readonly args = actArgs;
  static override readonly flags = actFlags;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmStop);
    await this.act({ goal: 'stopped', flags }, (client, signal) => client.stop(args.name, signal));
  }
}
