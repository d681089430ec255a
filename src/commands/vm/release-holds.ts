import { Flags } from '@oclif/core';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmReleaseHolds extends ClientCommand {
  static override readonly summary = 'Let go of VMs that are held because many vanished at once.';
  static override readonly description = `When more than a quarter of the declared VMs vanish at once without being deleted, all of them are kept until somebody decides. This says that it was meant: from now on their vanish grace counts, and they are destroyed after it, unless they are declared again.${exitCodes('unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm release-holds',
    '<%= config.bin %> vm release-holds --json',
  ];
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON: the names of the VMs' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(VmReleaseHolds);
    const released = await this.withAgent(flags, (client, signal) => client.releaseHolds(signal));
    if (flags.json) this.printJson(released);
    else this.print(released.message);
  }
}
