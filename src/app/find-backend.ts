/**
 * Finds the backend that this run uses: the plugins that are there, the one that is chosen, its code.
 */
import { access, constants, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BackendPlugin, HostFacts } from '@eitri/core/contracts';
import { EXIT, exitError } from '@eitri/core/kit';
import { loadBackend, readCatalog, selectBackend } from '../backends/index.js';
import type { CatalogEntry, PluginRoot } from '../backends/index.js';
import type { AgentConfig } from './config.js';
import { checkNetworkFlags } from './network-flags.js';

/** The agent's own package. */
const AGENT_ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Where plugins may be: those that oclif knows, and in a checkout its `plugins/*`. */
export async function pluginRoots(installed: readonly PluginRoot[]): Promise<readonly PluginRoot[]> {
  const folder = join(AGENT_ROOT, 'plugins');
  const names = await readdir(folder).catch(() => []);
  const checkout = names.sort().map((name): PluginRoot => ({ root: join(folder, name), origin: 'checkout' }));
  return [...checkout, ...installed];
}

export async function catalogOf(installed: readonly PluginRoot[], facts: HostFacts): Promise<readonly CatalogEntry[]> {
  const kvm = await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  return await readCatalog(await pluginRoots(installed), { facts, kvm });
}

export interface FoundBackend {
  readonly plugin: BackendPlugin;
  readonly because: string;
}

/** Chooses and loads. Rejects, with what to type, where none can be used. */
export async function findBackend(of: {
  readonly installed: readonly PluginRoot[];
  readonly facts: HostFacts;
  readonly pinned: string | undefined;
  readonly config: Pick<AgentConfig, 'backend' | 'guest-network' | 'host-network'>;
}): Promise<FoundBackend> {
  const entries = await catalogOf(of.installed, of.facts);
  checkNetworkFlags(of.config, entries);
  const outcome = selectBackend({ entries, os: of.facts.os, pinned: of.pinned, asked: of.config.backend });
  if (!outcome.ok) throw exitError(EXIT.badConfiguration, outcome.why);
  const { entry, because } = outcome.selection;
  return { plugin: await loadBackend(entry), because };
}
