import { Flags } from '@oclif/core';
import { repairHostNetwork, type NetworkActResult } from '../../app/network-acts.js';
import { ClientError } from '../../client/index.js';
import { placesOf } from '../shared/agent-command.js';
import { installedPlugins } from '../../app/plugins-host.js';
import { configOf, networkFlags } from '../shared/agent-config.js';
import { ClientCommand } from '../shared/client-command.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class NetworkRepair extends ClientCommand {
  static override readonly summary = "Put back what drifted of the guests' network: bridge, rules, taps, DHCP.";
  static override readonly description = `The running agent is asked to do at once what it does every 15 seconds, and what it put right is printed. Where no agent runs, the network is put up as a start with these flags would, so that guests that outlived their agent are reached again.${exitCodes('notFound', 'tryAgain', 'notPermitted', 'badConfiguration')}`;
  static override readonly examples = ['<%= config.bin %> network repair', '<%= config.bin %> network repair --json'];
  static override readonly flags = {
    ...networkFlags,
    json: Flags.boolean({ description: 'print JSON: what was put right' }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(NetworkRepair);
    const config = await configOf(flags);
    const places = { 'state-dir': config['state-dir'], 'run-dir': config['run-dir'] };
    const result = await this.withAgent(places, async (client, signal): Promise<NetworkActResult> => {
      try {
        return await client.repairNetwork(signal);
      } catch (error) {
        if (!(error instanceof ClientError && error.kind === 'unreachable')) throw error;
      }
      return await repairHostNetwork({
        config,
        places: placesOf(places),
        installed: await installedPlugins(this.config),
        signal,
      });
    });
    if (flags['json']) this.printJson(result);
    else this.print(result.message);
  }
}
