import { Flags } from '@oclif/core';
import { listPluginsOf } from '../../app/plugins-host.js';
import { AgentCommand, hostOs, placesOf, terminalColumns } from '../shared/agent-command.js';
import { exitCodes } from '../shared/exit-codes.js';
import { pluginsText } from '../shared/plugins-text.js';

const COLUMNS = 80;

/** Stands in front of the plain list that oclif's own plugin has under this name; its other commands stay. */
export default class Plugins extends AgentCommand {
  static override readonly summary = 'List the plugins, and say of each whether it can be used.';
  static override readonly description = `Looks at what is installed, linked, and in a checkout its own; tries each in a process of its own; and says which backend a start would take. What each reason means, and how plugins are written, is in docs/plugins.md.${exitCodes()}`;
  static override readonly examples = [
    '<%= config.bin %> plugins',
    '<%= config.bin %> plugins --json',
    '<%= config.bin %> plugins install @eitri/plugin-qemu',
  ];
  static override readonly flags = {
    json: Flags.boolean({ description: 'print JSON: an object with all plugins and the choice' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Plugins);
    const ending = new AbortController();
    const end = (): void => {
      ending.abort(new Error('interrupted'));
    };
    process.once('SIGINT', end);
    try {
      const listing = await listPluginsOf(this.config, { places: placesOf(flags), os: hostOs, signal: ending.signal });
      if (flags.json) this.printJson(listing);
      else this.print(pluginsText(listing, Math.max(60, terminalColumns() ?? COLUMNS)));
    } finally {
      process.off('SIGINT', end);
    }
  }
}
