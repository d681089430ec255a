/**
 * The kernel's switches that guests need, through `sysctl`.
 *
 * Forwarding is the whole host's and stays on when the guests' network is taken down: whether somebody else needs it by
 * then can't be told. IPv6 is off on the bridge: the guests' network has none, and with it a guest could send router
 * advertisements that this host believes.
 */
import type { NetworkHost } from '@eitri/core/contracts';

interface Setting {
  readonly key: string;
  readonly value: string;
  readonly mended: string;
  /** A kernel without IPv6 has no such key, and needs none. */
  readonly mayLack: boolean;
}

const settingsOf = (bridge: string): readonly Setting[] => [
  { key: 'net.ipv4.ip_forward', value: '1', mended: 'IPv4 forwarding was off and is on', mayLack: false },
  {
    key: `net.ipv6.conf.${bridge}.disable_ipv6`,
    value: '1',
    mended: `IPv6 was on and is off on ${bridge}`,
    mayLack: true,
  },
];

/** Whether this host forwards IPv4 at all. */
export async function isForwarding({ runner }: NetworkHost, signal: AbortSignal): Promise<boolean> {
  const { stdout } = await runner.run({ command: 'sysctl', args: ['-n', 'net.ipv4.ip_forward'] }, signal);
  return stdout.trim() === '1';
}

/** Sets what is not as it should be, and answers what that was. */
export async function ensureKernelSettings(
  { runner, errors }: NetworkHost,
  bridge: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const mended: string[] = [];
  for (const { key, value, mended: sentence, mayLack } of settingsOf(bridge)) {
    const args = ['-n', ...(mayLack ? ['-e'] : []), key];
    const found = (await runner.run({ command: 'sysctl', args }, signal)).stdout.trim();
    if (found === value || (found === '' && mayLack)) continue;
    try {
      await runner.run({ command: 'sysctl', args: ['-w', `${key}=${value}`] }, signal);
    } catch (cause) {
      throw errors.retryable(`set ${key} to ${value}`, { cause, code: 'NetworkFailed' });
    }
    mended.push(sentence);
  }
  return mended;
}
