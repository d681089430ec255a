/**
 * The programs that this plugin needs, and whether they may do what they are for. Looked at once, before anything is made.
 */
import type { NetworkHost } from '@eitri/core/contracts';

/** Each with the package that brings it. */
const TOOLS = {
  ip: 'iproute2',
  ss: 'iproute2',
  nft: 'nftables',
  dnsmasq: 'dnsmasq-base on Debian and Ubuntu, dnsmasq elsewhere',
  sysctl: 'procps',
} as const;

/** Rejects, permanent, with one sentence for each program that is not there. */
export async function checkTools({ runner, errors }: NetworkHost): Promise<void> {
  const missing: string[] = [];
  for (const [tool, from] of Object.entries(TOOLS)) {
    if ((await runner.which(tool)) === undefined)
      missing.push(`${tool} is not on this host: install the package ${from}`);
  }
  if (missing.length > 0) throw errors.permanent(missing.join('; '), { code: 'BackendMissing' });
}

/** Rejects, permanent, where the agent may not configure networks. Asks only; makes nothing. */
export async function checkRights({ runner, errors }: NetworkHost, signal: AbortSignal): Promise<void> {
  try {
    await runner.run({ command: 'nft', args: ['list', 'tables'] }, signal);
  } catch (cause) {
    if (!/not permitted/i.test(cause instanceof Error ? cause.message : '')) {
      throw errors.retryable("look at this host's packet filter with nft", { cause });
    }
    const refusal = errors.permanent(
      'the agent may not configure the network of this host, for which it needs CAP_NET_ADMIN: run it as root, or take --guest-network user',
      { cause, code: 'NetworkFailed' },
    );
    // As the kernel calls it: a matter of rights ends the agent with an exit code of its own.
    throw Object.assign(refusal, { code: 'EPERM' });
  }
}
