/**
 * A user's plugins as oclif keeps them, in a folder of the test's own, and the built command line that is told of it.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runCli, type CliOptions, type CliResult } from './cli.js';
import { writePlugin, type PluginFiles } from './plugin-folder.js';
import { tempFolder } from './temp.js';

interface Listed {
  readonly name: string;
  readonly type: 'user' | 'link';
  readonly root?: string;
}

export class PluginHost {
  readonly folder = tempFolder();
  readonly dataDir = join(this.folder, 'data');
  readonly stateDir = join(this.folder, 'state');
  /** oclif's list of them. */
  readonly listPath = join(this.dataDir, 'package.json');
  private readonly listed: Listed[] = [];

  /** As `plugins install` leaves it. Answers the package's folder. */
  install(plugin: PluginFiles = {}): string {
    const { name = '@x/demo' } = plugin;
    this.list({ name, type: 'user' });
    return writePlugin(join(this.dataDir, 'node_modules', name), plugin);
  }

  /** As `plugins link` leaves it. */
  link(plugin: PluginFiles = {}): string {
    const { name = '@x/demo' } = plugin;
    const root = join(this.folder, 'linked', name);
    this.list({ name, type: 'link', root });
    return writePlugin(root, plugin);
  }

  /** What the state directory is bound to. */
  bind(pins: { readonly backend?: string; readonly network?: string }): void {
    mkdirSync(join(this.stateDir, 'vms'), { recursive: true });
    this.write(join(this.stateDir, 'control.json'), JSON.stringify({ version: 1, stateId: 'test', ...pins }));
  }

  readonly run = (args: readonly string[], options: CliOptions = {}): Promise<CliResult> =>
    runCli(args, {
      ...options,
      env: { ...this.env, ...options.env },
    });

  /** Where the command line finds all of it. */
  get env(): Readonly<Record<string, string>> {
    return {
      EITRI_AGENT_DATA_DIR: this.dataDir,
      EITRI_AGENT_CACHE_DIR: join(this.folder, 'cache'),
      EITRI_STATE_DIR: this.stateDir,
      EITRI_RUN_DIR: join(this.folder, 'run'),
    };
  }

  private list(entry: Listed): void {
    this.listed.push(entry);
    this.write(this.listPath, JSON.stringify({ oclif: { schema: 1, plugins: this.listed } }));
  }

  private write(path: string, text: string): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
