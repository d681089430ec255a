/**
 * Which network plugin gives this host's guests their network: one pure rule.
 *
 *   bound to the VMs → `--guest-network user` → none → asked for by name → sole usable one → none where none is for this
 *   system
 *
 * User-mode networking is chosen, never fallen back to: where a plugin is there and can't be used, that is said. While a VM
 * is recorded its network stays what it was, because its addresses and devices are that network's; where none is, the
 * choice is free again.
 */
import type { HostOs } from '@eitri/core/contracts';
import type { CatalogEntry } from './plugin-catalog.js';
import type { SelectionOutcome } from './select.js';

export interface NetworkRequest {
  readonly entries: readonly CatalogEntry[];
  readonly os: HostOs;
  /** `--guest-network`. */
  readonly asked: string | undefined;
  /** What the state's VMs have: `user`, or the name of a plugin; undefined: that was never written down. */
  readonly pinned: string | undefined;
  /** VMs that are recorded. */
  readonly lives: number;
}

/** Undefined: guests have no network plugin, and the backend says whether it can do without. */
export function selectNetwork(request: NetworkRequest): SelectionOutcome | undefined {
  const { asked, pinned, lives } = request;
  if (pinned === undefined || lives === 0 || asked === pinned) return selectFreely(request);
  if (asked !== undefined) {
    const theirs = pinned === 'user' ? 'have user-mode networks' : `are on the network of ${pinned}`;
    return refuse(
      `--guest-network ${asked}: the VMs of this state directory ${theirs}: give --guest-network ${pinned}, delete all VMs first, or use another --state-dir`,
    );
  }
  if (pinned === 'user') {
    return refuse('the VMs of this state directory have user-mode networks: give --guest-network user');
  }
  const entry = usableIn(request.entries).find(({ manifest }) => manifest?.name === pinned);
  if (entry !== undefined) return { ok: true, selection: { entry, because: 'the VMs of this state are on it' } };
  const off = networksIn(request.entries).find(({ manifest }) => manifest?.name === pinned);
  return refuse(
    off === undefined
      ? `the network plugin ${pinned}, on which the VMs of this state directory are, is not installed; type: eitri-agent plugins install @eitri/plugin-${pinned}`
      : `the network plugin ${pinned}, on which the VMs of this state directory are, is off: ${off.packageName}: ${off.refused ?? ''}`,
  );
}

const networksIn = (entries: readonly CatalogEntry[]): readonly CatalogEntry[] =>
  entries.filter(({ manifest }) => manifest?.kind === 'network');

const usableIn = (entries: readonly CatalogEntry[]): readonly CatalogEntry[] =>
  networksIn(entries).filter(({ refused }) => refused === undefined);

const refuse = (why: string): SelectionOutcome => ({ ok: false, why });

function selectFreely({ entries, os, asked }: NetworkRequest): SelectionOutcome | undefined {
  if (asked === 'user') return undefined;
  const plugins = networksIn(entries);
  const usable = usableIn(entries);
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
