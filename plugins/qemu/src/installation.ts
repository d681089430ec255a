/**
 * What QEMU is on this host: its binary, its version, and which acceleration really works.
 *
 * Acceleration is tried and not guessed: a host may offer /dev/kvm, open it, and still fail at the first vCPU (a nested
 * host that refuses an MSR) or at its first instructions (one that can't enter a guest). So the trial has the machine and
 * CPU model that a guest will have, and its vCPUs run the firmware to its end: with nothing to boot from, SeaBIOS resets,
 * and `-no-reboot` makes that QEMU's own end. A QEMU whose accelerator broke stands still instead, and runs out of time.
 */
import { realpath } from 'node:fs/promises';
import type { BackendHost, HostArch } from '@eitri/core/contracts';
import { machineArguments, type Accelerator, type QemuVersion } from './arguments.js';

export interface Installation {
  /** Absolute path, links resolved: it is compared with what the kernel says of a running process. */
  readonly executable: string;
  readonly versionLine: string;
  readonly version: QemuVersion;
  readonly accelerator: Accelerator;
  /** Why guests are emulated, in QEMU's own words; undefined when they are not. */
  readonly emulatedBecause: string | undefined;
}

const MIN_VERSION: QemuVersion = { major: 6, minor: 2 };
const QUIT = ['qmp_capabilities', 'quit'].map((execute) => `${JSON.stringify({ execute })}\n`).join('');

export const binaryName = (arch: HostArch): string => (arch === 'x64' ? 'qemu-system-x86_64' : 'qemu-system-aarch64');

export const binaryAdvice = (os: BackendHost['facts']['os'], arch: HostArch): string =>
  os === 'darwin'
    ? 'install it with: brew install qemu'
    : `install the package ${arch === 'x64' ? 'qemu-system-x86' : 'qemu-system-arm'}, or name the binary with --qemu-bin`;

/** The version in the first line that `--version` prints. */
export function parseVersion(line: string): QemuVersion | undefined {
  const match = /version (\d{1,4})\.(\d{1,4})/.exec(line);
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]) };
}

const atLeast = (version: QemuVersion, wanted: QemuVersion): boolean =>
  version.major > wanted.major || (version.major === wanted.major && version.minor >= wanted.minor);

/** Where the binary is; undefined when it is not on this host. */
export async function findExecutable(host: BackendHost): Promise<string | undefined> {
  const found = await host.runner.which(host.settings.qemuBin ?? binaryName(host.facts.arch));
  return found === undefined ? undefined : realpath(found);
}

/** How an acceleration is tried. */
export interface Trial {
  /** In order of preference. */
  readonly accelerators: readonly Accelerator[];
  /** How long one trial may take; the firmware is through in 0.3 s, even emulated. */
  readonly trialMs: number;
}

/** Looks at the host's QEMU. Permanent where there is none, or one that is too old. */
export async function inspectInstallation(host: BackendHost, trial: Trial, signal: AbortSignal): Promise<Installation> {
  const { os, arch } = host.facts;
  const name = host.settings.qemuBin ?? binaryName(arch);
  const executable = await findExecutable(host);
  if (executable === undefined) {
    throw host.errors.permanent(`${name} is not on this host: ${binaryAdvice(os, arch)}`, { code: 'BackendMissing' });
  }
  const { stdout } = await host.runner.run({ command: executable, args: ['--version'] }, signal);
  const versionLine = stdout.split('\n', 1)[0]?.trim() ?? '';
  const version = parseVersion(versionLine);
  if (version === undefined || !atLeast(version, MIN_VERSION)) {
    throw host.errors.permanent(
      `${executable} says "${versionLine}", but QEMU ${MIN_VERSION.major.toString()}.${MIN_VERSION.minor.toString()} or newer is needed`,
      { code: 'BackendMissing' },
    );
  }
  return { executable, versionLine, version, ...(await pickAccelerator(host, executable, trial, signal)) };
}

/** The first that works, in order; emulation always does. */
async function pickAccelerator(
  host: BackendHost,
  executable: string,
  { accelerators, trialMs }: Trial,
  signal: AbortSignal,
): Promise<Pick<Installation, 'accelerator' | 'emulatedBecause'>> {
  const refusals: string[] = [];
  for (const accelerator of accelerators) {
    if (accelerator === 'tcg') break;
    const refusal = await tryAccelerator(host, executable, accelerator, trialMs, signal);
    if (refusal === undefined) return { accelerator, emulatedBecause: undefined };
    refusals.push(`${accelerator}: ${refusal}`);
  }
  return { accelerator: 'tcg', emulatedBecause: refusals.join('; ') || 'no other acceleration was asked for' };
}

async function tryAccelerator(
  host: BackendHost,
  executable: string,
  accelerator: Accelerator,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const runs = host.facts.arch === 'x64';
  const args = [
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
    ...machineArguments(host.facts.os, host.facts.arch, accelerator),
    '-smp',
    'cpus=2',
    '-m',
    'size=64M',
    // Arm's machine has no firmware of its own: there the vCPUs are made, and the trial ends.
    ...(runs ? ['-boot', 'menu=off,strict=on,reboot-timeout=1', '-no-reboot'] : ['-S', '-qmp', 'stdio']),
  ];
  const request = { command: executable, args, ...(runs ? {} : { input: QUIT }), timeoutMs };
  try {
    await host.runner.run(request, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    host.logger.info('qemu.accelerator.refused', { accelerator, err: error });
    return error instanceof Error ? error.message : String(error);
  }
}

/** In order of preference, for each system. */
export const defaultAccelerators = (os: BackendHost['facts']['os']): readonly Accelerator[] =>
  os === 'darwin' ? ['hvf', 'tcg'] : ['kvm', 'tcg'];
