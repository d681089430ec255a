/**
 * The configuration of a command line, and what is to be said of plugins that are off, whatever command was typed: who
 * installed one and does not see its VMs run would look everywhere else first.
 */
import { homedir } from 'node:os';
import { Config } from '@oclif/core';
import { listPlugins } from '../backends/plugin-roots.js';
import type { PluginPackage } from '../backends/index.js';
import { StatePaths } from '../state/state-paths.js';
import { envNameOf } from './flags.js';
import { findPlaces } from './places.js';
import { previewChoice, readPins } from './plugin-choice.js';

export interface LoadedConfig {
  readonly config: Config;
  /** What the user installed and linked, and a checkout's own, judged; empty where the user has none. */
  readonly packages: readonly PluginPackage[];
}

/** `root`: any file or folder of the agent's package. */
export async function loadConfig(root: string): Promise<LoadedConfig> {
  const core = await Config.load({ root, userPlugins: false });
  const listed = await listPlugins(core.dataDir);
  if (listed.length === 0) return { config: core, packages: [] };
  // Loaded here: a checkout, and whoever only talks to an agent, has none.
  const { surveyPlugins } = await import('./plugins-host.js');
  const { withPlugins } = await import('./oclif-plugins.js');
  const packages = await surveyPlugins(listed, core, { tryAll: false, signal: new AbortController().signal });
  return { config: await withPlugins(core, packages), packages };
}

/** One sentence each. `words`: the command line, its command first. */
export async function pluginNotices(
  { packages }: Pick<LoadedConfig, 'packages'>,
  words: readonly string[],
): Promise<readonly string[]> {
  const [command = '', second = ''] = words;
  // These tell of plugins in a way of their own.
  if (command === 'doctor' || (command === 'plugins' && !/^[a-z]/.test(second))) return [];
  const brought = packages.filter(({ origin }) => origin !== 'checkout');
  const told = brought.flatMap(({ packageName, refused, notes }) => [
    ...(refused === undefined ? [] : [`plugin ${packageName} is off: ${refused}`]),
    ...notes.map((note) => `plugin ${packageName}: ${note}`),
  ]);
  // A start has flags that this does not see, and says all of it itself.
  return command === 'run' ? told : [...told, ...(await choiceTroubles(packages, words))];
}

/** Why no backend, or no network, could be chosen, where that is the plugins' doing and not that there are none yet. */
async function choiceTroubles(
  packages: readonly PluginPackage[],
  words: readonly string[],
): Promise<readonly string[]> {
  const os = process.platform === 'darwin' ? 'darwin' : 'linux';
  const places = findPlaces(
    { stateDir: valueOf(words, 'state-dir'), runDir: undefined },
    { os, root: process.getuid?.() === 0, home: homedir(), env: process.env },
  );
  const pins = await readPins(new StatePaths(places).control);
  if (pins.backend === undefined && packages.length === 0) return [];
  const entries = packages.length > 0 ? packages : await unlisted();
  const asked = { backend: envOf('backend'), network: envOf('guest-network') };
  const { backend, network } = await previewChoice(entries, places, os, asked);
  // None at all is no news to whoever only talks to an agent; several are, and one that is gone.
  const provisioners = entries.filter(
    ({ manifest, refused }) => manifest?.kind === 'provisioner' && refused === undefined,
  );
  const telling = pins.backend === undefined && provisioners.length === 0 ? [] : [backend, network];
  return telling.flatMap((outcome) => (outcome === undefined || outcome.ok ? [] : [outcome.why]));
}

async function unlisted(): Promise<readonly PluginPackage[]> {
  const { surveyPlugins } = await import('./plugins-host.js');
  return await surveyPlugins([], { cacheDir: '' }, { tryAll: false, signal: new AbortController().signal });
}

function envOf(flag: string): string | undefined {
  const value = process.env[envNameOf(flag)];
  return value === '' ? undefined : value;
}

function valueOf(words: readonly string[], flag: string): string | undefined {
  const at = words.indexOf(`--${flag}`);
  if (at !== -1) return words[at + 1];
  return words.find((word) => word.startsWith(`--${flag}=`))?.slice(flag.length + 3);
}
