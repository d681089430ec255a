import { EventPrinter, localTime } from '../app/event-printer.js';
import { serve } from '../app/serve.js';
import type { AgentConfig } from '../app/config.js';
import { openLog } from '../app/run-log.js';
import { AgentCommand } from './shared/agent-command.js';
import { installedPlugins } from '../app/plugins-host.js';
import { agentFlags, configOf, home } from './shared/agent-config.js';
import { exitCodes } from './shared/exit-codes.js';

export default class Run extends AgentCommand {
  static override readonly summary = 'Run the agent: make the declared VMs true, and keep them so.';
  static override readonly description = `Takes the VMs from a folder of manifests (--local) and runs until Ctrl-C or SIGTERM, which no guest notices: they run on, and the next start finds them. Each flag can also be given as EITRI_<NAME>, or in a file (--config). At a terminal it prints a line an event; elsewhere it logs JSON to standard error.${exitCodes('badInput', 'cantWriteState', 'tryAgain', 'notPermitted', 'badConfiguration')}`;
  static override readonly examples = [
    '<%= config.bin %> local init /etc/eitri && <%= config.bin %> run --local /etc/eitri',
    '<%= config.bin %> run --local /etc/eitri --backend qemu --guest-network user',
    '<%= config.bin %> run --config /etc/eitri-agent.yaml',
  ];
  static override readonly flags = agentFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(Run);
    const config = await configOf(flags);
    const ending = new AbortController();
    const end = (): void => {
      ending.abort(new Error('the agent was told to end'));
    };
    process.on('SIGINT', end);
    process.on('SIGTERM', end);
    const terminal = process.stdout.isTTY;
    const quiet = terminal && process.stderr.isTTY && config['log-level'] !== 'debug';
    const { log, flush } = openLog(config['log-level'], quiet);
    try {
      await serve(config, {
        log,
        env: process.env,
        home: home(),
        version: this.config.version,
        installed: await installedPlugins(this.config),
        signal: ending.signal,
        ...(terminal ? { onEvents: (events) => this.show(config, events) } : {}),
      });
    } finally {
      process.off('SIGINT', end);
      process.off('SIGTERM', end);
      flush();
    }
  }

  private show(
    config: AgentConfig,
    events: Parameters<NonNullable<Parameters<typeof serve>[1]['onEvents']>>[0],
  ): () => void {
    for (const warning of config.warnings) this.print(`warning: ${warning}`);
    const printer = new EventPrinter({
      write: (text) => process.stdout.write(text),
      columns: () => (process.stdout.isTTY ? process.stdout.columns : undefined),
      timeOf: localTime,
    });
    const leave = events.listen(printer.print);
    return () => {
      leave();
      printer.end();
    };
  }
}
