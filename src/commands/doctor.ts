import { Flags } from '@oclif/core';
import { EXIT } from '@eitri/core/kit';
import { examineHost } from '../app/doctor-host.js';
import { isFit } from '../app/doctor.js';
import { ClientError } from '../client/index.js';
import { installedPlugins } from '../app/plugins-host.js';
import { agentFlags, configOf } from './shared/agent-config.js';
import { placesOf } from './shared/agent-command.js';
import { ClientCommand } from './shared/client-command.js';
import { doctorText } from './shared/doctor-text.js';
import { exitCodes } from './shared/exit-codes.js';

const COLUMNS = 80;

export default class Doctor extends ClientCommand {
  static override readonly summary = 'Say whether this host is fit to run VMs.';
  static override readonly description = `Looks at what an agent with these flags would need, changes nothing, and prints a line for each: ok, warn or fail, what was found, and what to do about it.${exitCodes('badConfiguration')}`;
  static override readonly examples = [
    '<%= config.bin %> doctor',
    '<%= config.bin %> doctor --local /etc/eitri --guest-network user',
    '<%= config.bin %> doctor --json',
  ];
  static override readonly flags = {
    ...agentFlags,
    json: Flags.boolean({ description: 'print JSON: an array of checks' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Doctor);
    const config = await configOf(flags);
    const places = { 'state-dir': config['state-dir'], 'run-dir': config['run-dir'] };
    const installed = await installedPlugins(this.config);
    const checks = await this.withAgent(places, (client, signal) =>
      examineHost({
        config,
        places: placesOf(places),
        installed,
        cacheDir: this.config.cacheDir,
        agent: async () => {
          try {
            const { version, pid, backend } = await client.status(signal);
            return { version, pid, backend: backend.name, guestNetwork: backend.guestNetwork };
          } catch (error) {
            if (error instanceof ClientError && error.kind === 'unreachable') return undefined;
            throw error;
          }
        },
        signal,
      }),
    );
    if (flags['json']) this.printJson(checks);
    else this.print(doctorText(checks, process.stdout.isTTY ? Math.max(60, process.stdout.columns) : COLUMNS));
    if (!isFit(checks)) this.exit(EXIT.badConfiguration);
  }
}
