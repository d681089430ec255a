/**
 * Whether the named networks that the operator declared can be served, judged before any backend's code runs. Pure.
 */
import { EXIT, exitError } from '@eitri/core/kit';
import type { CatalogEntry } from '../backends/index.js';
import type { AgentConfig } from './config.js';

/** Throws, with what to type, for named networks that nobody serves. */
export function checkNamedNetworks(
  config: Pick<AgentConfig, 'guest-network' | 'host-network'>,
  plugin: CatalogEntry | undefined,
): void {
  const names = config['host-network'].map(([name]) => name).join(', ');
  if (names === '') return;
  if (config['guest-network'] === 'user') {
    throw exitError(
      EXIT.badConfiguration,
      `--host-network: ${names} can't be served with --guest-network user, where each guest has a network of its own: remove one of the two flags`,
    );
  }
  if (plugin === undefined) {
    throw exitError(
      EXIT.badConfiguration,
      `--host-network: ${names} can't be served, since no network plugin is installed: install one, or remove the flag`,
    );
  }
}
