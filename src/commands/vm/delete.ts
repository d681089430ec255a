import { ActCommand, actArgs, actFlags } from '../shared/act-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmDelete extends ActCommand {
  static override readonly summary = 'Delete a VM.';
  static override readonly description = `Moves the VM's document to .deleted/ in the manifest folder. The guest is shut down now; its disk is kept for the tombstone grace (5 minutes, unless the agent was told otherwise), and until then vm undelete brings it back. Volumes are never deleted.${exitCodes('badInput', 'notFound', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm delete web-1',
    '<%= config.bin %> vm delete web-1 --no-wait',
  ];
  static override readonly args = actArgs;
  static override readonly flags = actFlags;

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmDelete);
    await this.act({ goal: 'deleted', flags }, (client, signal) => client.remove(args.name, signal));
  }
}
