/**
 * What `plugins` lists: every package that is or was to be a plugin, what is to be said of it, and which of them a start would
 * take. Pure.
 */
import type { PluginOrigin, PluginPackage, SelectionOutcome } from '../backends/index.js';
import type { Choice, Pins } from './plugin-choice.js';

/** `bound`: the state's VMs are its. `missing`: the state is bound to it, and no package offers it. */
export type PluginState = 'ready' | 'bound' | 'off' | 'missing';

export interface PluginRow {
  /** The package. */
  readonly name: string;
  readonly kind?: 'provisioner' | 'network' | 'commands';
  /** What `--backend` or `--guest-network` calls it. */
  readonly backend?: string;
  readonly version?: string;
  readonly contract?: number;
  readonly origin?: PluginOrigin;
  readonly root?: string;
  readonly state: PluginState;
  /** Why it is off or missing. */
  readonly reason?: string;
  /** What of it is not used though it is ready. */
  readonly notes: readonly string[];
}

/** What a start without flags would take, and why; or why it would take none. */
export type ChoiceView = { readonly name: string; readonly because: string } | { readonly refused: string };

export interface PluginListing {
  readonly plugins: readonly PluginRow[];
  readonly backend: ChoiceView;
  /** Absent: guests have no network plugin. */
  readonly network?: ChoiceView;
}

export function listingOf(packages: readonly PluginPackage[], { pins, backend, network }: Choice): PluginListing {
  const rows = packages.map((one) => rowOf(one, pins));
  return {
    plugins: [
      ...rows,
      ...missingRow(rows, 'provisioner', pins.backend, backend),
      ...(pins.network === 'user' ? [] : missingRow(rows, 'network', pins.network, network)),
    ],
    backend: viewOf(backend),
    ...(network === undefined ? {} : { network: viewOf(network) }),
  };
}

const viewOf = (outcome: SelectionOutcome): ChoiceView =>
  outcome.ok
    ? { name: outcome.selection.entry.manifest?.name ?? '', because: outcome.selection.because }
    : { refused: outcome.why };

function missingRow(
  rows: readonly PluginRow[],
  kind: 'provisioner' | 'network',
  pinned: string | undefined,
  outcome: SelectionOutcome | undefined,
): readonly PluginRow[] {
  if (pinned === undefined || rows.some((row) => row.kind === kind && row.backend === pinned)) return [];
  const reason = outcome?.ok === false ? outcome.why : 'the state directory was bound to it, and has no VM';
  return [{ name: `(${pinned})`, kind, backend: pinned, state: 'missing', reason, notes: [] }];
}

function rowOf(one: PluginPackage, pins: Pins): PluginRow {
  const { packageName, manifest, version, origin, root, refused, notes } = one;
  const kind = manifest?.kind ?? (refused === undefined ? 'commands' : undefined);
  const bound = manifest !== undefined && manifest.name === (kind === 'network' ? pins.network : pins.backend);
  return {
    name: packageName,
    ...(kind === undefined ? {} : { kind }),
    ...(manifest === undefined ? {} : { backend: manifest.name, contract: manifest.contract }),
    version,
    origin,
    root,
    state: refused !== undefined ? 'off' : bound ? 'bound' : 'ready',
    ...(refused === undefined ? {} : { reason: refused }),
    notes,
  };
}
