/**
 * Finds the backends that this run uses: the plugins that are there, those that are chosen, their code.
 */
import type { BackendPlugin, HostFacts } from '@eitri/core/contracts';
import { EXIT, exitError, permanent } from '@eitri/core/kit';
import { loadBackend, readCatalog, selectBackend, selectNetwork } from '../backends/index.js';
import type { CatalogEntry, PluginRoot, Selection, SelectionOutcome } from '../backends/index.js';
import { readRecordedBackends } from '../state/index.js';
import type { ControlState, StatePaths } from '../state/index.js';
import type { AgentConfig } from './config.js';
import { checkNamedNetworks } from './network-flags.js';
import { checkoutPlugins, hostAbilities } from './plugins-host.js';

export type ProvisionerPlugin = Extract<BackendPlugin, { readonly kind: 'provisioner' }>;
export type NetworkPlugin = Extract<BackendPlugin, { readonly kind: 'network' }>;

export interface FoundBackends {
  readonly plugin: ProvisionerPlugin;
  /** Why this one, for the log. */
  readonly because: string;
  /** Undefined: guests have no network plugin. */
  readonly network: NetworkPlugin | undefined;
  /** What the state is bound to from now on: `user`, or that plugin's name; undefined: nothing was chosen. */
  readonly networkPin: string | undefined;
  readonly networkBecause: string;
}

/** Chooses and loads. Rejects, with what to type, where none can be used. */
export async function findBackends(of: {
  readonly installed: readonly PluginRoot[];
  readonly facts: HostFacts;
  /** What the state is bound to; undefined: nothing yet. */
  readonly control: Pick<ControlState, 'backend' | 'network'> | undefined;
  readonly paths: Pick<StatePaths, 'vms'>;
  readonly config: Pick<AgentConfig, 'backend' | 'guest-network' | 'host-network'>;
}): Promise<FoundBackends> {
  const { config, control, facts, installed } = of;
  const entries = await readCatalog([...(await checkoutPlugins()), ...installed], await hostAbilities(facts));
  const { os } = facts;
  const pinned = control?.backend;
  // Without its pin the state's bond is what the records say; reading all of them is for that case.
  const recorded = await readRecordedBackends(of.paths, { names: pinned === undefined });
  const bound = { pinned: control?.network, lives: recorded.lives };
  const outcome = selectNetwork({ entries, os, asked: config['guest-network'], ...bound });
  const network = outcome === undefined ? undefined : chosen(outcome);
  checkNamedNetworks(config, network?.entry);
  const { entry, because } = chosen(selectBackend({ entries, os, pinned, asked: config.backend, recorded }));
  return {
    plugin: await loadKind(entry, 'provisioner'),
    because,
    network: network === undefined ? undefined : await loadKind(network.entry, 'network'),
    networkBecause: network?.because ?? 'each guest has one of its own',
    networkPin: network?.entry.manifest?.name ?? config['guest-network'],
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
