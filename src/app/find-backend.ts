/**
 * Finds the backends that this run uses: the plugins that are there, those that are chosen, their code.
 */
import { access, constants, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BackendPlugin, HostFacts } from '@eitri/core/contracts';
import { EXIT, exitError, permanent } from '@eitri/core/kit';
import { loadBackend, readCatalog, selectBackend, selectNetwork } from '../backends/index.js';
import type { CatalogEntry, PluginRoot, Selection, SelectionOutcome } from '../backends/index.js';
import type { AgentConfig } from './config.js';
import { checkNamedNetworks } from './network-flags.js';

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

export type ProvisionerPlugin = Extract<BackendPlugin, { readonly kind: 'provisioner' }>;
export type NetworkPlugin = Extract<BackendPlugin, { readonly kind: 'network' }>;

export interface FoundBackends {
  readonly plugin: ProvisionerPlugin;
  /** Why this one, for the log. */
  readonly because: string;
  /** Undefined: guests have no network plugin. */
  readonly network: NetworkPlugin | undefined;
}

/** Chooses and loads. Rejects, with what to type, where none can be used. */
export async function findBackends(of: {
  readonly installed: readonly PluginRoot[];
  readonly facts: HostFacts;
  readonly pinned: string | undefined;
  readonly config: Pick<AgentConfig, 'backend' | 'guest-network' | 'host-network'>;
}): Promise<FoundBackends> {
  const entries = await catalogOf(of.installed, of.facts);
  const { os } = of.facts;
  const outcome = selectNetwork({ entries, os, asked: of.config['guest-network'] });
  const network = outcome === undefined ? undefined : chosen(outcome).entry;
  checkNamedNetworks(of.config, network);
  const { entry, because } = chosen(selectBackend({ entries, os, pinned: of.pinned, asked: of.config.backend }));
  return {
    plugin: await loadKind(entry, 'provisioner'),
    because,
    network: network === undefined ? undefined : await loadKind(network, 'network'),
  };
}

function chosen(outcome: SelectionOutcome): Selection {
  if (!outcome.ok) throw exitError(EXIT.badConfiguration, outcome.why);
  return outcome.selection;
}

async function loadKind<K extends BackendPlugin['kind']>(
  entry: CatalogEntry,
  kind: K,
): Promise<Extract<BackendPlugin, { readonly kind: K }>> {
  const plugin = await loadBackend(entry);
  if (!isKind(plugin, kind)) throw permanent(`plugin ${entry.packageName} is no ${kind}`);
  return plugin;
}

const isKind = <K extends BackendPlugin['kind']>(
  plugin: BackendPlugin,
  kind: K,
): plugin is Extract<BackendPlugin, { readonly kind: K }> => plugin.kind === kind;
