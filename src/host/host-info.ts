/**
 * What this machine is, read once at start. What everything leans on (system, boot id) rejects where it can't be read;
 * what is only shown (the host's name) does not.
 */
import { availableParallelism, hostname, totalmem } from 'node:os';
import type { HostArch, HostFacts, HostOs, Runner } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { readIfThere } from './atomic-file.js';

/** Where the facts come from: this machine, or a test's. */
export interface HostSources {
  readonly platform: string;
  readonly arch: string;
  readonly userId: number | undefined;
  readonly hostname: () => string;
  readonly cpus: () => number;
  readonly memoryBytes: () => number;
  /** The text of a file; undefined where there is none. */
  readonly readFile: (path: string) => Promise<string | undefined>;
  readonly runner: Runner;
}

export const realHostSources = (runner: Runner): HostSources => ({
  platform: process.platform,
  arch: process.arch,
  userId: process.getuid?.(),
  hostname,
  cpus: availableParallelism,
  memoryBytes: totalmem,
  readFile: readIfThere,
  runner,
});

const BOOT_ID = '/proc/sys/kernel/random/boot_id';
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id'];

export async function readHostFacts(sources: HostSources, signal: AbortSignal): Promise<HostFacts> {
  const os = hostOs(sources.platform);
  return {
    os,
    arch: hostArch(sources.arch),
    bootId: await readBootId(os, sources, signal),
    hostname: readHostname(sources),
    root: sources.userId === 0,
    cpus: Math.max(1, sources.cpus()),
    memoryMib: Math.floor(sources.memoryBytes() / 2 ** 20),
  };
}

/** What tells this machine from its clone; undefined where the system has nothing of the kind. */
export async function readMachineId(sources: HostSources, signal: AbortSignal): Promise<string | undefined> {
  if (sources.platform === 'darwin') {
    const args = ['-rd1', '-c', 'IOPlatformExpertDevice'];
    const { stdout } = await sources.runner.run({ command: 'ioreg', args }, signal);
    return /"IOPlatformUUID" = "([^"]+)"/.exec(stdout)?.[1];
  }
  for (const path of MACHINE_IDS) {
    const id = (await sources.readFile(path))?.trim();
    // An image that is to get an id at its first boot says so in its place.
    if (id !== undefined && id !== '' && id !== 'uninitialized') return id;
  }
  return undefined;
}

function hostOs(platform: string): HostOs {
  if (platform === 'linux' || platform === 'darwin') return platform;
  throw permanent(`this system is ${platform}: the agent runs on Linux and macOS`);
}

function hostArch(arch: string): HostArch {
  if (arch === 'x64' || arch === 'arm64') return arch;
  throw permanent(`this processor is ${arch}: the agent runs on x64 and arm64`);
}

async function readBootId(os: HostOs, sources: HostSources, signal: AbortSignal): Promise<string> {
  const hint = 'without it no process could be told from one of an earlier boot';
  let text: string | undefined;
  try {
    text =
      os === 'linux'
        ? await sources.readFile(BOOT_ID)
        : (await sources.runner.run({ command: 'sysctl', args: ['-n', 'kern.bootsessionuuid'] }, signal)).stdout;
  } catch (cause) {
    throw permanent(`read the host's boot id, ${hint}`, { cause });
  }
  const id = text?.trim() ?? '';
  if (id === '') throw permanent(`the host has no boot id (is /proc mounted?), and ${hint}`);
  return id;
}

function readHostname(sources: HostSources): string {
  try {
    return sources.hostname().trim() || 'unknown';
  } catch {
    return 'unknown';
  }
}
