import { ActCommand, actArgs, actFlags } from '../shared/act-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmUndelete extends ActCommand {
  static override readonly summary = 'Take back the deletion of a VM.';
  static override readonly description = `Moves the VM's document back from .deleted/ into the manifest folder. As long as the tombstone grace lasts, it comes back with its disk and address; after it, as a new VM.${exitCodes('badInput', 'notFound', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm undelete web-1',
    '<%= config.bin %> vm undelete web-1 --json',
  ];
  static override readonly args = actArgs;
  static override readonly flags = actFlags;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmUndelete);
    await this.act({ goal: undefined, flags }, (client, signal) => client.undelete(args.name, signal));
  }
}
