/**
 * What there is to say of the guests' network on this host, for `doctor`. Looks, and changes nothing; a look that fails is
 * a finding of its own, and keeps no other from being made.
 */
import type { NetworkFinding } from '@eitri/core/contracts';
import { bridgeFix, foreignBridge } from './bridge.js';
import type { HostWide } from './host-wide.js';
import { isForwarding } from './kernel-settings.js';
import { BRIDGE } from './names.js';
import { collisions, describeRoute } from './routes.js';

type Look = (wide: HostWide, signal: AbortSignal) => Promise<Omit<NetworkFinding, 'what'>>;

const REPAIR = 'eitri-agent network repair';

export async function examine(wide: HostWide, signal: AbortSignal): Promise<readonly NetworkFinding[]> {
  const looks: readonly (readonly [string, Look])[] = [
    ['network tools', lookAtTools],
    ['forwarding', lookAtForwarding],
    ['bridge', lookAtBridge],
    ['guest rules', lookAtRules],
    ['dnsmasq', lookAtDnsmasq],
    ['overlaps', lookAtOverlaps],
  ];
  const found: NetworkFinding[] = [];
  for (const [what, look] of looks) {
    try {
      found.push({ what, ...(await look(wide, signal)) });
    } catch (error) {
      signal.throwIfAborted();
      found.push({ what, level: 'fail', detail: error instanceof Error ? error.message : String(error) });
    }
  }
  return found;
}

/** That they are there was looked at before anything else. */
const lookAtTools: Look = async ({ host }) => {
  const paths = await Promise.all(['ip', 'nft', 'dnsmasq'].map((tool) => host.runner.which(tool)));
  return { level: 'ok', detail: paths.filter((path) => path !== undefined).join(', ') };
};

const lookAtForwarding: Look = async ({ host, nft }, signal) => {
  const droppers = await nft.droppers(signal);
  if (droppers.length > 0) {
    return {
      level: 'warn',
      detail: `${droppers.join(' and ')} drops what it is not told to let through, as Docker's and firewalls' do: guests may reach nothing beyond this host`,
      next: `let ${BRIDGE} pass there, in and out`,
    };
  }
  if (await isForwarding(host, signal)) return { level: 'ok', detail: 'IPv4 is forwarded' };
  return { level: 'ok', detail: 'IPv4 is not forwarded yet: the agent switches it on at its start' };
};

const lookAtBridge: Look = async ({ ip, stateId, bridge }, signal) => {
  const links = await ip.links(signal);
  const foreign = foreignBridge(links, stateId);
  if (foreign !== undefined) return { level: 'fail', detail: foreign };
  if (!links.has(BRIDGE)) return { level: 'ok', detail: `${BRIDGE} is made at the agent's start`, atStart: true };
  const { lines } = bridgeFix(links, await ip.addresses(BRIDGE, signal), bridge);
  if (lines.length === 0) return { level: 'ok', detail: `${BRIDGE} has ${bridge.address}` };
  return { level: 'warn', detail: `${BRIDGE} is not as it should be: it lacks ${lines.join('; ')}`, next: REPAIR };
};

const lookAtRules: Look = async ({ ip, nft, stateId }, signal) => {
  if ((await ip.links(signal)).get(BRIDGE)?.alias !== stateId) return { level: 'ok', detail: `made with ${BRIDGE}` };
  if (await nft.isTrue(signal)) return { level: 'ok', detail: 'in force' };
  return { level: 'warn', detail: 'gone or changed: guests do not get out, or are not shut off', next: REPAIR };
};

const lookAtDnsmasq: Look = async ({ ip, dhcp, stateId }, signal) => {
  if (await dhcp.runs(signal)) return { level: 'ok', detail: `answers DHCP and DNS on ${BRIDGE}` };
  // Rejects with who has its port, or what else keeps it from running.
  await dhcp.check(signal);
  if ((await ip.links(signal)).get(BRIDGE)?.alias === stateId) {
    return { level: 'warn', detail: `does not run, though ${BRIDGE} stands: guests lose their leases`, next: REPAIR };
  }
  return { level: 'ok', detail: 'can be started' };
};

const lookAtOverlaps: Look = async ({ ip, cidr, subnet, host }, signal) => {
  const found = collisions(cidr, BRIDGE, await ip.routes(signal));
  if (found.length === 0) return { level: 'ok', detail: `${subnet} overlaps nothing` };
  const routes = [...new Set(found.map(describeRoute))].join(', ');
  const detail = `the guest subnet ${subnet} overlaps what this host reaches elsewhere: ${routes}`;
  // What can't be told is not denied, as at a start.
  const guests = await host.recordedUids(signal).then(
    ({ size }) => size > 0,
    () => true,
  );
  if (!guests) return { level: 'fail', detail, next: 'choose another with --bridge-cidr' };
  return { level: 'warn', detail, next: 'destroy or move the guests, then choose another --bridge-cidr' };
};
