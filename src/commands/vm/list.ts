import { Flags } from '@oclif/core';
import { terminalColumns } from '../shared/agent-command.js';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';
import { vmListText } from '../shared/vm-text.js';

export default class VmList extends ClientCommand {
  static override readonly summary = 'List the VMs of this host.';
  static override readonly description = `One line a VM: what it is, what it has, and what stands in its way.${exitCodes('unreachable', 'notPermitted')}`;
  static override readonly examples = ['<%= config.bin %> vm list', '<%= config.bin %> vm list --json'];
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON: an array of VMs' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(VmList);
    const vms = await this.withAgent(flags, (client, signal) => client.vms(signal));
    if (flags.json) this.printJson(vms);
    else this.print(vmListText(vms, terminalColumns()));
  }
}
