import { ActCommand, actArgs, actFlags } from '../shared/act-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmStart extends ActCommand {
  static override readonly summary = 'Declare a VM running.';
  static override readonly description = `Sets power to running in the VM's document of the manifest folder, which the agent then makes true; all else in the document stays.${exitCodes('badInput', 'notFound', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm start web-1',
    '<%= config.bin %> vm start web-1 --wait --timeout 2m',
  ];
  static override readonly args = actArgs;
  static override readonly flags = actFlags;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmStart);
    await this.act({ goal: 'running', flags }, (client, signal) => client.start(args.name, signal));
  }
}
