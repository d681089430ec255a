/**
 * Which network plugin gives this host's guests their network: one pure rule.
 *
 *   `--guest-network user` → none → asked for by name → sole usable one → none where none is for this system
 *
 * User-mode networking is chosen, never fallen back to: where a plugin is there and can't be used, that is said.
 */
import type { HostOs } from '@eitri/core/contracts';
import type { CatalogEntry } from './plugin-catalog.js';
import type { SelectionOutcome } from './select.js';

export interface NetworkRequest {
  readonly entries: readonly CatalogEntry[];
  readonly os: HostOs;
  /** `--guest-network`. */
  readonly asked: string | undefined;
}

/** Undefined: guests have no network plugin, and the backend says whether it can do without. */
export function selectNetwork({ entries, os, asked }: NetworkRequest): SelectionOutcome | undefined {
  if (asked === 'user') return undefined;
  const plugins = entries.filter(({ manifest }) => manifest?.kind === 'network');
  const usable = plugins.filter(({ refused }) => refused === undefined);
  const names = usable.map(({ manifest }) => manifest?.name ?? '').sort();
  if (asked !== undefined) {
    const entry = usable.find(({ manifest }) => manifest?.name === asked);
    if (entry !== undefined) return { ok: true, selection: { entry, because: '--guest-network asked for it' } };
    const refused = plugins.find(({ manifest }) => manifest?.name === asked)?.refused;
    const why = refused === undefined ? 'no network plugin of that name is installed' : `it can't be used: ${refused}`;
    const others = names.length === 0 ? 'none is' : `installed are ${names.join(', ')}`;
    return {
      ok: false,
      why: `--guest-network ${asked}: ${why} (${others}): type "eitri-agent plugins install @eitri/plugin-${asked}", or give --guest-network user`,
    };
  }
  const [only, second] = usable;
  if (only !== undefined && second === undefined)
    return { ok: true, selection: { entry: only, because: 'it is the only network plugin' } };
  if (second !== undefined) {
    return {
      ok: false,
      why: `several network plugins qualify (${names.join(', ')}): choose one with --guest-network NAME`,
    };
  }
  // One for another system is nobody's trouble here.
  const broken = plugins.filter(({ manifest }) => manifest?.os.includes(os));
  if (broken.length === 0) return undefined;
  const reasons = broken.map(({ packageName, refused }) => `${packageName}: ${refused ?? ''}`).join('; ');
  return { ok: false, why: `no network plugin can be used: ${reasons}; put that right, or give --guest-network user` };
}
