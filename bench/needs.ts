/**
 * What a benchmark of machines needs of this one. Asks only: nothing is installed or made.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PACKAGES = [
  ...['qemu-system-x86', 'qemu-utils', 'ovmf', 'xorriso', 'dnsmasq-base', 'iproute2', 'nftables'],
  ...['libvirt-daemon-system', 'libvirt-daemon-driver-qemu', 'libvirt-clients'],
] as const;

/** Each with the package that brings it. */
const AGENTS = {
  'qemu-system-x86_64': 'qemu-system-x86',
  'qemu-img': 'qemu-utils',
  xorriso: 'xorriso',
  dnsmasq: 'dnsmasq-base',
  ip: 'iproute2',
  nft: 'nftables',
} as const;
const LIBVIRTS = { libvirtd: 'libvirt-daemon-system', virsh: 'libvirt-clients' } as const;

export const BIN = fileURLToPath(new URL('../../../bin/run.js', import.meta.url));
const BUILD = fileURLToPath(new URL('../../../dist/commands/run.js', import.meta.url));

/** Of who runs the agent with machines in a network namespace. */
export const agentLacks = (): readonly string[] => [
  ...(process.geteuid?.() === 0 ? [] : ['it must be run by root, who may make network namespaces']),
  ...(process.arch === 'x64' && process.platform === 'linux' ? [] : ['it is written for Linux on x86-64']),
  ...(existsSync(BUILD) ? [] : ['the agent is not built: npm run build']),
  ...missing(AGENTS),
];

/** Of who has libvirt for a peer as well. */
export const libvirtLacks = (): readonly string[] => [...agentLacks(), ...missing(LIBVIRTS)];

const missing = (programs: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(programs).flatMap(([program, from]) =>
    isThere(program) ? [] : [`${program} is missing: it is in the Debian package ${from}`],
  );

function isThere(program: string): boolean {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
