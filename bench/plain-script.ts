/**
 * The plain script: what a person would write who wants these machines now and cares for nothing else. The same copies,
 * seeds, files with their fsyncs, `ip -batch` and QEMU command lines as ours, at the same width; no look at what is there,
 * no rules, no DHCP server, nothing that survives it.
 */
import { spawn, execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { copyFile, open, rename, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { natMac } from '@eitri/core/kit';
import type { VmUid } from '@eitri/core/contracts';
import { buildArguments } from '../plugins/qemu/src/arguments.js';
import { seedDocuments } from '../src/seed/documents.js';
import { SystemRandom } from '../src/host/clock.js';
import { HostKeyStore } from '../src/state/host-keys.js';
import type { Bench, Contender } from './harness.js';
import {
  atWidth,
  DISK_GIB,
  endVmmsOf,
  FIRMWARE_CODE,
  FIRMWARE_VARS,
  folderIn,
  MEMORY_MIB,
  reached,
  outcomeOf,
  QEMU,
  vmmsOf,
  type Scene,
} from './machines.js';

const run = promisify(execFile);

interface Machine {
  readonly name: string;
  readonly uid: VmUid;
  readonly own: string;
  readonly guest: string;
  readonly tap: string;
}

export const SCRIPT_BRIDGE = 'br-script';
/** How often ours writes a machine's record on its way up, each time whole and synced: counted by strace, without the end. */
const RECORD_WRITES = 10;
/** Of about the size of ours. */
const RECORD = JSON.stringify({ version: 2, text: 'r'.repeat(2_000) });

export async function makeBridge(scene: Scene, name: string, address: string): Promise<void> {
  await scene.net.ip(`link add ${name} type bridge`);
  await scene.net.ip(`address add ${address} dev ${name}`);
  await scene.net.ip(`link set ${name} up`);
}

/** A copy of the image, grown, with all that makes it last. */
export async function makeDisk(base: string, path: string): Promise<void> {
  const partial = `${path}.partial`;
  await run('cp', ['--reflink=auto', '--sparse=always', '--', base, partial]);
  const file = await open(partial, 'r+');
  await file.truncate(DISK_GIB * 2 ** 30);
  await file.sync();
  await file.close();
  await place(partial, path);
}

/** The same seed as ours. */
export async function makeSeed(path: string, keysFolder: string, uid: VmUid, hostname: string): Promise<void> {
  const hostKey = await new HostKeyStore(new SystemRandom()).ensure(keysFolder);
  const own = { userData: undefined, mac: natMac(uid), namedMac: undefined, sshKeys: [] };
  const work = `${path}.work`;
  mkdirSync(work);
  for (const [name, text] of Object.entries(seedDocuments({ uid, hostname, hostKey, ...own }))) {
    writeFileSync(join(work, name), text);
    utimesSync(join(work, name), 0, 0);
  }
  const args = ['-no_rc', '-as', 'mkisofs', '-quiet', '-V', 'cidata', '-J', '-r', '-o', `${path}.partial`, work];
  await run('xorriso', args);
  await place(`${path}.partial`, path);
  rmSync(work, { recursive: true });
}

async function place(partial: string, path: string): Promise<void> {
  await sync(partial);
  await rename(partial, path);
  await sync(dirname(path));
}

async function sync(path: string): Promise<void> {
  const file = await open(path);
  await file.sync();
  await file.close();
}

async function writeSynced(path: string, text: string): Promise<void> {
  await writeFile(`${path}.partial`, text);
  await place(`${path}.partial`, path);
}

export async function plainScript(
  scene: Scene,
  { defer, signal }: Bench,
  accelerator: () => 'kvm' | 'tcg',
): Promise<Contender> {
  const folder = folderIn(scene, 'script');
  await makeBridge(scene, SCRIPT_BRIDGE, '10.78.1.1/24');
  defer(() => endVmmsOf(folder));
  let turn = 0;
  const recordIn = (own: string): Promise<void> => writeSynced(join(own, 'record.json'), RECORD);
  const made = async ({ name, uid, own, guest }: Machine): Promise<void> => {
    mkdirSync(guest, { recursive: true });
    mkdirSync(join(own, 'keys'));
    for (let written = 0; written < RECORD_WRITES - 2; written++) await recordIn(own);
    await makeDisk(scene.base, join(guest, 'disk.raw'));
    await makeSeed(join(guest, 'seed.img'), join(own, 'keys'), uid, name);
  };
  const started = async ({ name, uid, own, guest, tap }: Machine): Promise<void> => {
    const lines = [
      `tuntap add dev ${tap} mode tap`,
      `link set dev ${tap} master ${SCRIPT_BRIDGE}`,
      `link set dev ${tap} type bridge_slave isolated on`,
      `link set dev ${tap} up`,
    ];
    const batch = run('ip', ['netns', 'exec', scene.net.name, 'ip', '-batch', '-']);
    batch.child.stdin?.end(lines.map((line) => `${line}\n`).join(''));
    await batch;
    await writeSynced(join(own, 'hosts'), `${name} ${uid}\n`);
    const vars = join(guest, 'vars.fd');
    await copyFile(FIRMWARE_VARS, `${vars}.partial`);
    await place(`${vars}.partial`, vars);
    await recordIn(own);
    const qmp = join(own, 'qmp.sock');
    const args = buildArguments({
      ...{ os: 'linux', arch: 'x64', accelerator: accelerator(), version: { major: 7, minor: 2 }, id: name, uid },
      ...{ cpus: 1, memoryMib: MEMORY_MIB, firmwareCode: FIRMWARE_CODE, firmwareVars: vars },
      ...{ rootDisk: join(guest, 'disk.raw'), seed: join(guest, 'seed.img'), volumes: [] },
      ...{ nics: { kind: 'tap', first: { tap, mac: natMac(uid) } }, hardware: {}, limits: {} },
      ...{ serialSocket: join(own, 'serial.sock'), qmpSocket: qmp },
    });
    const log = openSync(join(guest, 'vmm.log'), 'a');
    const words = ['netns', 'exec', scene.net.name, QEMU, '-S', ...args];
    const child = spawn('ip', words, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    child.unref();
    await writeSynced(join(own, 'vmm.pid'), String(child.pid ?? 0));
    await reached(`${name} answers`, signal, () => greets(qmp));
    await recordIn(own);
  };
  return {
    name: 'script',
    run: async () => {
      const home = join(folder, `t${String(++turn)}`);
      const machines = scene.names.map((name, at): Machine => {
        const own = join(home, name);
        const tap = `sc-${String(turn)}-${at.toString()}`;
        return { name, uid: randomUUID() as VmUid, own, guest: join(own, 'guest'), tap };
      });
      const begun = performance.now();
      await atWidth(machines, signal, made, started);
      const value = (performance.now() - begun) / 1000;
      const outcome = await outcomeOf(home, scene.net, SCRIPT_BRIDGE);
      endVmmsOf(home);
      await reached('the VMMs end', signal, () => vmmsOf(home).length === 0);
      for (const { tap } of machines) await scene.net.ip(`link delete dev ${tap}`);
      rmSync(home, { recursive: true });
      return { value, outcome };
    },
  };
}

/** Whether QEMU says hello there. */
function greets(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('error', () => end(false));
    socket.once('data', () => end(true));
  });
}
