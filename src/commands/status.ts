import { Flags } from '@oclif/core';
import { textColumns } from './shared/agent-command.js';
import { ClientCommand } from './shared/client-command.js';
import { exitCodes } from './shared/exit-codes.js';
import { statusText } from './shared/vm-text.js';

export default class Status extends ClientCommand {
  static override readonly summary = 'Show how the running agent does.';
  static override readonly description = `Its version and host, its backend, its control plane, what was declared and can not be done, and what its VMs hold.${exitCodes('unreachable', 'notPermitted')}`;
  static override readonly examples = ['<%= config.bin %> status', '<%= config.bin %> status --json'];
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Status);
    const status = await this.withAgent(flags, (client, signal) => client.status(signal));
    if (flags.json) this.printJson(status);
    else this.print(statusText(status, textColumns()));
  }
}
