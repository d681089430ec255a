/**
 * Whether what the operator asked of guest networks can be had here, judged before any backend's code runs. Pure.
 */
import { EXIT, exitError } from '@eitri/core/kit';
import type { CatalogEntry } from '../backends/index.js';
import type { AgentConfig } from './config.js';

/** Throws, with what to type, for a network plugin that is not there, or named networks that nobody serves. */
export function checkNetworkFlags(
  config: Pick<AgentConfig, 'guest-network' | 'host-network'>,
  entries: readonly CatalogEntry[],
): void {
  const asked = config['guest-network'];
  const plugins = entries.filter(({ manifest }) => manifest?.kind === 'network');
  const usable = plugins.filter(({ refused }) => refused === undefined).map(({ manifest }) => manifest?.name ?? '');
  if (asked !== undefined && asked !== 'user' && !usable.includes(asked)) {
    const refused = plugins.find(({ manifest }) => manifest?.name === asked)?.refused;
    const why = refused === undefined ? 'no network plugin of that name is installed' : `it can't be used: ${refused}`;
    const others = usable.length === 0 ? 'none is' : `installed are ${usable.join(', ')}`;
    throw exitError(
      EXIT.badConfiguration,
      `--guest-network ${asked}: ${why} (${others}): type "eitri-agent plugins install @eitri/plugin-${asked}", or give --guest-network user`,
    );
  }
  const names = config['host-network'].map(([name]) => name).join(', ');
  if (names === '') return;
  if (asked === 'user') {
    throw exitError(
      EXIT.badConfiguration,
      `--host-network: ${names} can't be served with --guest-network user, where each guest has a network of its own: remove one of the two flags`,
    );
  }
  if (usable.length === 0) {
    throw exitError(
      EXIT.badConfiguration,
      `--host-network: ${names} can't be served, since no network plugin is installed: install one, or remove the flag`,
    );
  }
}
