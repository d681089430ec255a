import { Flags } from '@oclif/core';
import { EXIT, exitError, formatBytes } from '@eitri/core/kit';
import { ADMIN_LIMITS } from '@eitri/protocol';
import { textColumns } from './shared/agent-command.js';
import { ClientCommand } from './shared/client-command.js';
import { exitCodes } from './shared/exit-codes.js';
import { readManifestTree, type NamedText } from './shared/manifest-input.js';
import { planText } from './shared/plan-text.js';

export default class Plan extends ClientCommand {
  static override readonly summary = 'Show what the agent will do, and why.';
  static override readonly description = `Each step with its reason, what it waits for and until when, and where it ends: when nothing fails, guests do what they are asked, and nobody changes their mind. With --file: what it would do if these manifests were applied on top of what is declared. Nothing is changed by asking.${exitCodes('differs', 'badInput', 'unreachable', 'tryAgain', 'notPermitted')}`;
  static override readonly examples = [
    '<%= config.bin %> plan',
    '<%= config.bin %> plan -f web-1.yaml db.yaml',
    '<%= config.bin %> plan -f ./vms --json',
  ];
  static override readonly flags = {
    file: Flags.string({
      char: 'f',
      multiple: true,
      helpValue: 'FILE...',
      description: 'manifests, or folders of them, that are not applied yet; - reads standard input',
    }),
    json: Flags.boolean({ description: 'print JSON' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Plan);
    const files = await readManifestTree(flags.file ?? [], ADMIN_LIMITS.askedBytes);
    checkSize(files);
    const plan = await this.withAgent(flags, (client, signal) => client.plan([...files], signal));
    if (flags.json) this.printJson(plan);
    else this.print(planText(plan, textColumns()));
    if (!plan.asWanted) this.exit(EXIT.differs);
  }
}

/** As they travel, which is a little longer than they are. */
function checkSize(files: readonly NamedText[]): void {
  const { askedBytes, askedFiles } = ADMIN_LIMITS;
  if (files.length <= askedFiles && Buffer.byteLength(JSON.stringify({ files })) <= askedBytes) return;
  throw exitError(
    EXIT.badInput,
    `--file: more than ${askedFiles} files, or more than ${formatBytes(askedBytes)}: ask about fewer documents at once`,
  );
}
