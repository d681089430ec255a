import { Args, Flags } from '@oclif/core';
import { ADMIN_LIMITS } from '@eitri/protocol';
import { EXIT, exitError } from '@eitri/core/kit';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmLogs extends ClientCommand {
  static override readonly summary = 'Print what a VM wrote to its console.';
  static override readonly description = `Prints the log of the serial console, over all boots, also while the VM is stopped; with --vmm what its hypervisor said. Bytes come as the guest wrote them.${exitCodes('notFound', 'unreachable', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm logs web-1',
    '<%= config.bin %> vm logs web-1 --tail 50 --follow',
    '<%= config.bin %> vm logs web-1 --vmm',
  ];
  static override readonly args = { name: Args.string({ required: true, description: 'name or uid of the VM' }) };
  static override readonly flags = {
    vmm: Flags.boolean({ description: "the hypervisor's log instead of the guest's" }),
    tail: Flags.string({ char: 'n', helpValue: 'LINES', description: 'only the last lines' }),
    follow: Flags.boolean({ char: 'f', description: 'go on with what is added, until Ctrl-C' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmLogs);
    const lines = flags.tail === undefined ? {} : { lines: lineCount(flags.tail) };
    await this.withAgent(flags, async (client, signal) => {
      const options = { which: flags.vmm ? 'vmm' : 'serial', follow: flags.follow, ...lines } as const;
      for await (const chunk of await client.logs(args.name, options, signal)) await this.printBytes(chunk as Buffer);
    });
  }
}

function lineCount(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count <= ADMIN_LIMITS.tailLines) return count;
  throw exitError(EXIT.usage, `--tail: want a whole number from 0 to ${ADMIN_LIMITS.tailLines}, got "${text}"`);
}
