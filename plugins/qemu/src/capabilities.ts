/**
 * What QEMU can do on this host, honestly: every sentence in `notes` is one that an operator would rather read than find
 * out. Pure.
 */
import type { Capabilities, CapabilityNote, HostFacts } from '@eitri/core/contracts';
import type { Installation } from './installation.js';

/** `plugin`: taps of a network plugin; `user`: QEMU's own network, without root. */
export type GuestNetwork = 'user' | 'plugin';

export function capabilitiesOf(
  facts: Pick<HostFacts, 'os' | 'root'>,
  guestNetwork: GuestNetwork,
  installation: Installation | undefined,
): Capabilities {
  const user = guestNetwork === 'user';
  const linux = facts.os === 'linux';
  return {
    backend: 'qemu',
    vmmVersion: installation?.versionLine ?? 'QEMU was not found',
    guestNetwork: user ? 'user' : 'tap',
    addressReachable: !user,
    publishesPorts: user,
    namedNetworks: !user,
    powerButton: true,
    consoleBacklog: false,
    hardware: {
      hugepages: linux,
      sharedMemory: linux,
      // QEMU has no option for it, and threads pinned from outside would be unpinned by the next agent.
      cpuAffinity: false,
      // Both need a process or a host-wide number beside the guest that nobody here looks after yet.
      tpm: false,
      vsock: false,
      smbiosSerial: true,
    },
    limits: { disk: true, net: false },
    notes: [
      ...(user ? userNetworkNotes : []),
      ...emulationNotes(installation),
      ...(linux ? [] : sandboxNotes),
      ...(facts.root ? rootNotes : []),
    ],
  };
}

function info(text: string): CapabilityNote {
  return { level: 'info', text };
}

const userNetworkNotes: readonly CapabilityNote[] = [
  info(
    'with --guest-network user a guest is reached through its published ports only, never at its address: every guest is 10.0.2.15 in a network of its own',
  ),
  info(
    'with --guest-network user a guest reaches nothing, neither the host nor the internet nor a name server: QEMU of today can only shut a guest off from the host’s own loopback by shutting it off from everything (restrict=on); guests that fetch packages need a network plugin',
  ),
  info(
    'with --guest-network user ports are published on IPv4 addresses only, and a guest sees 10.0.2.2 as the peer of every connection',
  ),
];

/** QEMU's own words may be an assertion with its source line; a note is one sentence. */
const REASON_CHARS = 100;

const sandboxNotes: readonly CapabilityNote[] = [
  info('QEMU runs without a system call filter here: it has one on Linux only'),
];

const rootNotes: readonly CapabilityNote[] = [
  info(
    'QEMU runs as root, as the agent does: a guest that breaks out of it has this host; without root, run the agent as a user of its own with --guest-network user',
  ),
];

function emulationNotes(installation: Installation | undefined): readonly CapabilityNote[] {
  if (installation?.emulatedBecause === undefined) return [];
  const why = installation.emulatedBecause.replace(/\s+/g, ' ');
  const short = why.length > REASON_CHARS ? `${why.slice(0, REASON_CHARS)}… (the log has all of it)` : why;
  const text = `guests are emulated (TCG), several times slower than with hardware acceleration: ${short}`;
  return [{ level: 'warn', text }];
}
