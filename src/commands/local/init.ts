import { Args, Flags } from '@oclif/core';
import { initManifestFolder } from '../../app/local-folder.js';
import { AgentCommand } from '../shared/agent-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class LocalInit extends AgentCommand {
  static override readonly summary = 'Make a folder that says which VMs this host runs.';
  static override readonly description = `Makes the folder, where it is missing, and its marker .eitri-lineage. Without its marker a folder says nothing, so that a disk that is not mounted is never taken for a wish that all VMs go. A marker that is there stays.${exitCodes('cantWriteState')}`;
  static override readonly examples = ['<%= config.bin %> local init /etc/eitri'];
  static override readonly args = { dir: Args.string({ required: true, description: 'the folder' }) };
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON: the lineage, and whether it is new' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(LocalInit);
    const { made, lineage, epoch, folder } = await initManifestFolder(args.dir);
    if (flags.json) this.printJson({ folder, made, lineage, epoch });
    else if (made) {
      this.print(`${folder} is a manifest folder now (lineage ${lineage}); next: eitri-agent run --local ${folder}`);
    } else this.print(`${folder} is a manifest folder already (lineage ${lineage}); nothing was changed`);
  }
}
