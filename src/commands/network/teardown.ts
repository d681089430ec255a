import { tearDownHostNetwork } from '../../app/network-acts.js';
import { AgentCommand, placesOf } from '../shared/agent-command.js';
import { installedPlugins } from '../../app/plugins-host.js';
import { configOf, networkFlags } from '../shared/agent-config.js';
import { exitCodes } from '../shared/exit-codes.js';

export default class NetworkTeardown extends AgentCommand {
  static override readonly summary = "Take the guests' network down: bridge, rules, taps, DHCP.";
  static override readonly description = `Refused while an agent runs on this state directory, which would put it up again, and while a guest runs. VMs keep their addresses for the next start; where there is none, the next start may choose another subnet. IPv4 forwarding stays on, since others may need it by now. To have an agent do this at its end, start it with --teardown.${exitCodes('notFound', 'tryAgain', 'notPermitted', 'badConfiguration')}`;
  static override readonly examples = ['<%= config.bin %> network teardown'];
  static override readonly flags = networkFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(NetworkTeardown);
    const config = await configOf(flags);
    const { message } = await tearDownHostNetwork({
      config,
      places: placesOf({ 'state-dir': config['state-dir'], 'run-dir': config['run-dir'] }),
      installed: await installedPlugins(this.config),
      signal: new AbortController().signal,
    });
    this.print(message);
  }
}
