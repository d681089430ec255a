import { exitCodes } from '../shared/exit-codes.js';
import { WriteCommand, writeFlags } from '../shared/write-command.js';

export default class VmApply extends WriteCommand {
  static override readonly summary = 'Declare VMs, new or changed.';
  static override readonly description = `Writes each document into the manifest folder: in the place of the one that declares its name, or as NAME.yaml where none does. All documents are written, or none; a deletion of one of these names is taken back. A userDataFile is looked for in the manifest folder, not beside FILE.${exitCodes('badInput', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm apply -f web-1.yaml --no-wait',
    'cat *.yaml | <%= config.bin %> vm apply -f -',
  ];
  static override readonly flags = writeFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(VmApply);
    await this.write('apply', flags);
  }
}
