/**
 * The machines that the benchmarks start, the same for each contender, and what came of starting them.
 *
 * Owns a scratch folder, a network namespace with nobody's network in it, one small image, and the QEMU that starts its
 * guests stopped (`-S`): what guests do with this machine's processors is nobody's merit. Whatever runs in the namespace or
 * names the folder is ended by pid when both are removed.
 */
import { execFile } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Semaphore } from '@eitri/core/kit';
import { Namespace } from '../test/support/netenv/namespace.js';
import { endProcessesOf, processesNaming } from '../test/support/processes.js';
import type { Bench } from './harness.js';

const run = promisify(execFile);

/** What the goals are set for. */
export const MACHINES = 50;
/** How many are made, and started, at a time: the agent's own defaults. */
export const WIDTH = 4;
export const MEMORY_MIB = 128;
export const DISK_GIB = 1;
/** Of an image; the rest of it, and of the disk, is holes. */
const DATA_MIB = 16;
const IMAGE_MIB = 64;
const FIRMWARE = '/usr/share/OVMF';
export const FIRMWARE_CODE = join(FIRMWARE, 'OVMF_CODE_4M.fd');
export const FIRMWARE_VARS = join(FIRMWARE, 'OVMF_VARS_4M.fd');
export const QEMU = '/usr/bin/qemu-system-x86_64';

export interface Scene {
  readonly folder: string;
  readonly net: Namespace;
  /** qcow2, for the agent. */
  readonly image: string;
  /** The same, raw, for who has no cache of images. */
  readonly base: string;
  /** QEMU, starting its guest stopped. */
  readonly qemu: string;
  readonly names: readonly string[];
}

export async function makeScene({ machines = MACHINES, defer }: Bench): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'eit-bench-'));
  defer(async () => {
    await endProcessesOf(folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  });
  // Others pass through: root's agent has images converted by a user without rights.
  chmodSync(folder, 0o711);
  const net = await Namespace.make();
  defer(() => net.remove());
  const base = join(folder, 'base.raw');
  const image = join(folder, 'base.qcow2');
  writeFileSync(base, randomBytes(DATA_MIB * 2 ** 20));
  await run('truncate', ['-s', `${IMAGE_MIB}M`, base]);
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', base, image]);
  const qemu = join(folder, 'qemu-stopped');
  writeFileSync(qemu, `#!/bin/sh\nexec ${QEMU} -S "$@"\n`, { mode: 0o755 });
  const names = Array.from({ length: machines }, (_, at) => `m${at.toString().padStart(2, '0')}`);
  return { folder, net, image, base, qemu, names };
}

/** A folder of one contender's own. */
export function folderIn({ folder }: Scene, name: string): string {
  const made = join(folder, name);
  mkdirSync(made);
  chmodSync(made, 0o711);
  return made;
}

/**
 * Does the stages for each machine, one after the other; so many machines at a time are in each stage, as with ours, which
 * starts some while it makes others. After a failure nothing more is begun, and what is under way is waited for.
 */
export async function atWidth<T>(
  items: readonly T[],
  signal: AbortSignal,
  ...stages: readonly ((item: T, at: number) => Promise<void>)[]
): Promise<void> {
  const failure = new AbortController();
  const either = AbortSignal.any([signal, failure.signal]);
  // Each machine listens to it: many listeners are no leak here.
  setMaxListeners(0, either);
  const gates = stages.map((work) => ({ work, gate: new Semaphore(WIDTH) }));
  const lanes = items.map(async (item, at) => {
    for (const { work, gate } of gates) {
      const release = await gate.acquire(either);
      try {
        await work(item, at);
      } catch (error) {
        failure.abort(error);
        throw error;
      } finally {
        release();
      }
    }
  });
  await Promise.allSettled(lanes);
  either.throwIfAborted();
}

/** On a machine that does much else. */
const PATIENCE_MS = 600_000;
/** Each look is work for the one who is asked. */
const LOOK_EVERY_MS = 50;

/** Waits until it holds. What the question throws, and an interruption, end the waiting at once. */
export async function reached(
  what: string,
  signal: AbortSignal,
  holds: () => Promise<boolean> | boolean,
): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not reached within ${PATIENCE_MS / 1000} s: ${what}`);
    await sleep(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** What stands now of the VMMs that name this folder: the same words for the same machines, whoever started them. */
export async function outcomeOf(folder: string, net: Namespace, bridge: string): Promise<string> {
  const vmms = vmmsOf(folder);
  const devices = ['virtio-net-pci', 'virtio-blk-pci', 'virtio-rng-pci', 'pvpanic'];
  const kinds = new Set(
    vmms.map(({ argv }) => {
      const counts = devices.map((name) => `${countOf(argv, name)} ${name}`);
      return [`${memoryOf(argv)} MiB`, acceleratorOf(argv), ...counts].join(' ');
    }),
  );
  const disks = filesBelow(folder, 'disk.raw').map((path) => statSync(path).size / 2 ** 30);
  const seeds = filesBelow(folder, 'seed.img').length;
  const links = await net.json('link show');
  const taps = links.filter((link) => link['master'] === bridge).length;
  const sizes = [...new Set(disks)].join(' or ');
  return `${vmms.length} VMMs (${[...kinds].join(' or ')}), ${disks.length} disks of ${sizes} GiB, ${seeds} seeds, ${taps} taps on the bridge`;
}

/** QEMU's processes that name this folder. */
export const vmmsOf = (folder: string): ReturnType<typeof processesNaming> =>
  processesNaming(`${folder}/`).filter(({ argv }) => argv[0]?.includes('qemu-system') === true);

/** Ends them, by pid. */
export function endVmmsOf(folder: string): void {
  for (const { pid } of vmmsOf(folder)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

const countOf = (argv: readonly string[], device: string): number =>
  argv.filter((word, at) => argv[at - 1] === '-device' && word.includes(device)).length;

/** QEMU's own MiB, however it is said. */
function memoryOf(argv: readonly string[]): number {
  const word = argv[argv.indexOf('-m') + 1] ?? '';
  const [, digits = '0', unit = 'M'] = /^(?:size=)?(\d+)([kM]?)/.exec(word) ?? [];
  return unit === 'k' ? Number(digits) / 1024 : Number(digits);
}

const acceleratorOf = (argv: readonly string[]): string =>
  argv.find((_, at) => argv[at - 1] === '-accel') ?? /accel=(\w+)/.exec(argv.join(' '))?.[1] ?? 'no accelerator';

const filesBelow = (folder: string, name: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name === name)
    .map((entry) => join(entry.parentPath, entry.name));

/** The accelerator that this QEMU was started with, for who has to choose the same. */
export function acceleratorUsed(folder: string): string {
  const [first] = vmmsOf(folder);
  if (first === undefined) throw new Error(`no VMM of ${folder} runs`);
  return acceleratorOf(first.argv);
}

export const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};
