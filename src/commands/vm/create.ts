import { exitCodes } from '../shared/exit-codes.js';
import { WriteCommand, writeFlags } from '../shared/write-command.js';

export default class VmCreate extends WriteCommand {
  static override readonly summary = 'Declare new VMs.';
  static override readonly description = `Writes each document into the manifest folder as NAME.yaml, which the agent then makes true. A name that is declared already is refused: change it with vm apply. All documents are written, or none. A userDataFile is looked for in the manifest folder, not beside FILE.${exitCodes('badInput', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm create -f web-1.yaml --wait --timeout 10m',
    'cat *.yaml | <%= config.bin %> vm create -f -',
  ];
  static override readonly flags = writeFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(VmCreate);
    await this.write('create', flags);
  }
}
