/**
 * Composes the network from what the host hands it. The only place of this package that builds anything, and nothing on
 * the host is made here: what this host lacks, or may not do, is said before.
 */
import type { BackendPlugin, NetworkBackend, NetworkHost } from '@eitri/core/contracts';
import { resolveGuestCidr } from './guest-cidr.js';
import { HostWide, type NetenvOptions } from './host-wide.js';
import { LinuxHostNetwork } from './linux-host-network.js';
import { LinuxNetwork } from './linux-network.js';
import { checkRights, checkTools } from './tools.js';

/** The backend with its options open, for tests. */
export async function createNetenv(
  host: NetworkHost,
  signal: AbortSignal,
  options: NetenvOptions = {},
): Promise<NetworkBackend> {
  const { persistedCidr, bridgeCidr, suggestedCidr } = host.networkSettings;
  const resolved = resolveGuestCidr({ persisted: persistedCidr, flag: bridgeCidr, suggestion: suggestedCidr });
  if (!resolved.ok) throw host.errors.permanent(resolved.why);
  for (const note of resolved.notes) host.logger.warn('netenv.cidr.notInForce', { why: note });
  await checkTools(host);
  await checkRights(host, signal);
  const wide = new HostWide(host, resolved.cidr, options);
  return { network: new LinuxNetwork(wide), hostNetwork: new LinuxHostNetwork(wide), publisher: undefined };
}

/** Contract number 1, as in this package's `eitri` block. */
export const backend: BackendPlugin = {
  contract: 1,
  kind: 'network',
  name: 'netenv-linux',
  create: (host, signal) => createNetenv(host, signal),
};
