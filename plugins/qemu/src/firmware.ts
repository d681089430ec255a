/**
 * Finds the UEFI firmware: code, and the template of the variables that every guest gets its own copy of.
 *
 * Both must be of one family: they are two parts of one flash, and code with variables of another size starts a guest
 * that hangs before its first line. So a pair counts only when the sizes fit, and a guest that has its variables already
 * gets code of their family, also after an upgrade of the host brought another one.
 */
import { dirname, join } from 'node:path';
import type { HostArch, HostOs } from '@eitri/core/contracts';

export interface Firmware {
  readonly code: string;
  readonly varsTemplate: string;
  readonly varsBytes: number;
}

/** Size of a file in bytes, undefined where there is none. */
export type SizeOf = (path: string) => Promise<number | undefined>;

interface Pair {
  readonly folder: string;
  readonly code: string;
  readonly vars: string;
}

const MIB = 1024 * 1024;
/** An Arm flash is exactly this, each part. */
const ARM_FLASH_BYTES = 64 * MIB;
/** An x86 flash is one of these, both parts together. */
const X86_FLASH_BYTES: readonly number[] = [2 * MIB, 4 * MIB];

// The 4 MiB families first: the 2 MiB ones have too little room for the keys of today's Windows and are being dropped.
const X86_PAIRS: readonly Pair[] = [
  { folder: '/usr/share/OVMF', code: 'OVMF_CODE_4M.fd', vars: 'OVMF_VARS_4M.fd' },
  { folder: '/usr/share/edk2/x64', code: 'OVMF_CODE.4m.fd', vars: 'OVMF_VARS.4m.fd' },
  { folder: '/usr/share/qemu', code: 'ovmf-x86_64-4m-code.bin', vars: 'ovmf-x86_64-4m-vars.bin' },
  { folder: '/usr/share/edk2/ovmf', code: 'OVMF_CODE.fd', vars: 'OVMF_VARS.fd' },
  { folder: '/usr/share/edk2-ovmf/x64', code: 'OVMF_CODE.fd', vars: 'OVMF_VARS.fd' },
  { folder: '/usr/share/OVMF', code: 'OVMF_CODE.fd', vars: 'OVMF_VARS.fd' },
];
const ARM_PAIRS: readonly Pair[] = [
  { folder: '/usr/share/AAVMF', code: 'AAVMF_CODE.fd', vars: 'AAVMF_VARS.fd' },
  { folder: '/usr/share/edk2/aarch64', code: 'QEMU_EFI-pflash.raw', vars: 'vars-template-pflash.raw' },
  { folder: '/usr/share/edk2/aarch64', code: 'QEMU_CODE.fd', vars: 'QEMU_VARS.fd' },
  { folder: '/usr/share/qemu', code: 'aavmf-aarch64-code.bin', vars: 'aavmf-aarch64-vars.bin' },
];
/** What QEMU's own build installs in its share folder; the variables' odd names are QEMU's. */
const OWN_PAIR: Readonly<Record<HostArch, Omit<Pair, 'folder'>>> = {
  x64: { code: 'edk2-x86_64-code.fd', vars: 'edk2-i386-vars.fd' },
  arm64: { code: 'edk2-aarch64-code.fd', vars: 'edk2-arm-vars.fd' },
};
const OWN_FOLDERS: Readonly<Record<HostOs, readonly string[]>> = {
  linux: ['/usr/share/qemu', '/usr/local/share/qemu'],
  darwin: ['/opt/homebrew/share/qemu', '/usr/local/share/qemu', '/opt/local/share/qemu'],
};

/** All places, best first. The binary's own neighbour comes before QEMU's usual folders: it is the one it was built with. */
export function firmwarePlaces(os: HostOs, arch: HostArch, executable: string): readonly Pair[] {
  const neighbour = join(dirname(executable), '..', 'share', 'qemu');
  const own = [...new Set([neighbour, ...OWN_FOLDERS[os]])].map((folder) => ({ folder, ...OWN_PAIR[arch] }));
  return [...(os === 'linux' ? (arch === 'x64' ? X86_PAIRS : ARM_PAIRS) : []), ...own];
}

function fits(arch: HostArch, codeBytes: number, varsBytes: number): boolean {
  return arch === 'arm64'
    ? codeBytes === ARM_FLASH_BYTES && varsBytes === ARM_FLASH_BYTES
    : X86_FLASH_BYTES.includes(codeBytes + varsBytes);
}

/** The first pair that fits; with `varsBytes`, that fits a guest's own variables of that size. */
export async function findFirmware(
  places: readonly Pair[],
  arch: HostArch,
  sizeOf: SizeOf,
  varsBytes?: number,
): Promise<Firmware | undefined> {
  for (const place of places) {
    const code = join(place.folder, place.code);
    const varsTemplate = join(place.folder, place.vars);
    const [codeSize, varsSize] = await Promise.all([sizeOf(code), sizeOf(varsTemplate)]);
    if (codeSize === undefined || varsSize === undefined || !fits(arch, codeSize, varsSize)) continue;
    if (varsBytes !== undefined && varsBytes !== varsSize) continue;
    return { code, varsTemplate, varsBytes: varsSize };
  }
  return undefined;
}

/** What an operator has to do when there is none. */
export function firmwareAdvice(os: HostOs, arch: HostArch): string {
  if (os === 'darwin') return 'install it with: brew install qemu';
  return arch === 'x64'
    ? 'install the package ovmf (Debian, Ubuntu), edk2-ovmf (Fedora, Arch) or qemu-ovmf-x86_64 (openSUSE)'
    : 'install the package qemu-efi-aarch64 (Debian, Ubuntu), edk2-aarch64 (Fedora, Arch) or qemu-uefi-aarch64 (openSUSE)';
}
