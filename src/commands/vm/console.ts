import { userInfo } from 'node:os';
import { Args, Flags } from '@oclif/core';
import { EXIT, exitError } from '@eitri/core/kit';
import { ClientCommand } from '../shared/client-command.js';
import { joinConsole, type ConsoleOutcome } from '../shared/console-terminal.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class VmConsole extends ClientCommand {
  static override readonly summary = "Join a VM's serial console.";
  static override readonly description = `What the guest printed since its start comes first. All keys go to the guest; Ctrl-] leaves. Many may look at a console and one may type: a second one is refused, unless --force takes over. With input from a pipe, what comes is typed, and after its end the command ends as soon as the guest has been quiet for a second; with --read-only the input is not read.${exitCodes('notFound', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> vm console web-1',
    '<%= config.bin %> vm console web-1 --force',
    '<%= config.bin %> vm console web-1 --read-only > boot.txt',
    'echo uptime | <%= config.bin %> vm console web-1 --no-backlog',
  ];
  static override readonly args = { name: Args.string({ required: true, description: 'name or uid of the VM' }) };
  static override readonly flags = {
    force: Flags.boolean({ description: 'take the keyboard from whoever types now', exclusive: ['read-only'] }),
    'read-only': Flags.boolean({ description: 'look only; needs no right to act' }),
    backlog: Flags.boolean({ default: true, allowNo: true, description: 'begin with what was printed before' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(VmConsole);
    const typing = !flags['read-only'];
    await this.withAgent(flags, async (client, signal) => {
      const options = { write: typing, force: flags.force, backlog: flags.backlog, who: whoAmI() };
      const session = await client.console(args.name, options, signal);
      this.tell(`${typing ? 'console' : 'console, to look only,'} of ${args.name}: Ctrl-] leaves`);
      const outcome = await joinConsole(session, { input: process.stdin, output: process.stdout, typing });
      this.tellOutcome(args.name, outcome);
    });
  }

  /** Beside the guest's output, which may go into a file. */
  private tell(text: string): void {
    if (process.stdin.isTTY) process.stderr.write(`${text}\r\n`);
  }

  private tellOutcome(name: string, outcome: ConsoleOutcome): void {
    switch (outcome.reason) {
      case 'detached':
      case 'input ended':
      case 'signal':
      case 'closed':
        this.tell('\r\nleft the console');
        return;
      case 'stopped':
        this.tell(`\r\nthe console of ${name} ended: the guest, or the agent, went down`);
        return;
      case 'taken over':
        throw exitError(EXIT.tryAgain, `${outcome.by ?? 'somebody'} took over the console of ${name}`);
      case 'dropped':
        throw exitError(EXIT.tryAgain, `the console of ${name} was read too slowly and let go: join it again`);
      case 'lost':
        throw exitError(EXIT.unreachable, `the agent went away; the guest runs on: join ${name} again in a moment`);
    }
  }
}

/** Shown to whoever is refused, or taken over, because of us. */
function whoAmI(): string {
  try {
    return userInfo().username;
  } catch {
    // No entry for this user: a container's.
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
