/**
 * libvirt as a peer: a libvirtd of the benchmark's own, in the scene's network namespace and in a mount namespace in which
 * its folders are the benchmark's, so that it knows nothing of this machine's libvirt, and leaves nothing.
 *
 * It is not slowed down by what ours does not do: no security driver, no cgroups, no mount namespace a guest, no log
 * daemon. It is started stopped (`virsh start --paused`), as ours is.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { natMac } from '@eitri/core/kit';
import type { VmUid } from '@eitri/core/contracts';
import { isAlive } from '../test/support/processes.js';
import type { Bench } from './harness.js';
import {
  endVmmsOf,
  FIRMWARE_CODE,
  FIRMWARE_VARS,
  folderIn,
  MEMORY_MIB,
  reached,
  QEMU,
  textOf,
  vmmsOf,
  type Scene,
} from './machines.js';
import { makeBridge } from './plain-script.js';

const run = promisify(execFile);

export const LIBVIRT_BRIDGE = 'br-libvirt';
/** Where this libvirt was built to look; `/run` is empty for it, so that it finds no bus and no service manager. */
const PLACES = { etc: '/etc/libvirt', lib: '/var/lib/libvirt', log: '/var/log/libvirt', cache: '/var/cache/libvirt' };

export interface Domain {
  readonly name: string;
  readonly uid: VmUid;
  /** Where its disk and its seed stand. */
  readonly folder: string;
}

export class Libvirt {
  readonly folder: string;
  private readonly socket: string;
  private readonly daemonLog: string;
  private daemon: { readonly pid: number; readonly ended: Promise<unknown> } | undefined;

  private constructor(
    private readonly scene: Scene,
    private readonly signal: AbortSignal,
  ) {
    this.folder = folderIn(scene, 'libvirt');
    this.socket = join(this.folder, 'sock');
    this.daemonLog = join(this.folder, 'daemon.log');
  }

  static async make(scene: Scene, { defer, signal }: Bench): Promise<Libvirt> {
    const made = new Libvirt(scene, signal);
    defer(async () => {
      endVmmsOf(made.folder);
      await made.end();
    });
    await makeBridge(scene, LIBVIRT_BRIDGE, '10.79.1.1/24');
    for (const name of [...Object.keys(PLACES), 'sock']) mkdirSync(join(made.folder, name));
    const settings = [`unix_sock_dir = "${made.socket}"`, 'auth_unix_rw = "none"', 'auth_unix_ro = "none"'];
    writeFileSync(join(made.folder, 'etc', 'libvirtd.conf'), `${settings.join('\n')}\n`);
    const plain = [
      ...['security_driver = "none"', 'user = "root"', 'group = "root"', 'dynamic_ownership = 0'],
      ...['remember_owner = 0', 'namespaces = []', 'cgroup_controllers = []', 'stdio_handler = "file"'],
    ];
    writeFileSync(join(made.folder, 'etc', 'qemu.conf'), `${plain.join('\n')}\n`);
    const mounts = Object.entries(PLACES).map(([name, place]) => `mount --bind ${join(made.folder, name)} ${place}`);
    // What it knows of its running guests stands below /run, and outlives the daemon: one /run for all its starts.
    const lines = ['set -e', `mount --bind ${join(made.folder, 'run')} /run`, ...mounts];
    mkdirSync(join(made.folder, 'run'));
    const daemon = `exec libvirtd -f ${join(PLACES.etc, 'libvirtd.conf')} -p ${join(made.folder, 'libvirtd.pid')}`;
    writeFileSync(join(made.folder, 'start.sh'), `${[...lines, daemon].join('\n')}\n`);
    return made;
  }

  /** Starts the daemon; it need not answer yet. */
  start(): void {
    const log = openSync(this.daemonLog, 'a');
    const inside = ['unshare', '--mount', '--propagation', 'private', 'sh', join(this.folder, 'start.sh')];
    const words = ['netns', 'exec', this.scene.net.name, ...inside];
    const child = spawn('ip', words, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    if (child.pid === undefined) throw new Error('libvirtd could not be started');
    this.daemon = { pid: child.pid, ended: once(child, 'exit') };
  }

  async started(): Promise<void> {
    this.start();
    await this.until('libvirtd answers', async () => (await this.running()) !== undefined);
  }

  /** The daemon only: its guests run on. */
  async end(): Promise<void> {
    if (this.daemon === undefined) return;
    if (isAlive(this.daemon.pid)) process.kill(this.daemon.pid, 'SIGKILL');
    await this.daemon.ended;
    this.daemon = undefined;
  }

  async virsh(...words: readonly string[]): Promise<string> {
    const uri = `qemu:///system?socket=${join(this.socket, 'libvirt-sock')}`;
    return (await run('virsh', ['--quiet', '--connect', uri, ...words])).stdout;
  }

  /** Undefined: no daemon answers yet. */
  async running(): Promise<readonly string[] | undefined> {
    try {
      return (await this.virsh('list', '--name')).split('\n').filter((line) => line !== '');
    } catch {
      return undefined;
    }
  }

  /** Resolves when it lists so many guests. */
  untilRunning(count: number): Promise<void> {
    return this.until(`libvirtd lists ${count}`, async () => (await this.running())?.length === count);
  }

  async defineAndStart(domain: Domain, accelerator: 'kvm' | 'tcg'): Promise<void> {
    const path = join(domain.folder, 'domain.xml');
    writeFileSync(path, domainXml(domain, accelerator));
    // One virsh for both: it is not made to start twice a machine.
    await this.virsh(`define ${path}; start ${domain.name} --paused`);
  }

  /** All its guests end, and it forgets them. Their VMMs are killed here: libvirt asks each first, and waits. */
  async clear(names: readonly string[]): Promise<void> {
    endVmmsOf(this.folder);
    await this.until('libvirtd sees its guests gone', async () => (await this.running())?.length === 0);
    await reached('its VMMs end', this.signal, () => vmmsOf(this.folder).length === 0);
    await this.virsh(names.map((name) => `undefine ${name} --nvram`).join('; '));
  }

  removeFolder(name: string): void {
    rmSync(join(this.folder, name), { recursive: true });
  }

  private until(what: string, holds: () => Promise<boolean>): Promise<void> {
    return reached(what, this.signal, () => {
      if (this.daemon === undefined || !isAlive(this.daemon.pid)) {
        throw new Error(`libvirtd ended: ${textOf(this.daemonLog)}`);
      }
      return holds();
    });
  }
}

/** The devices that ours has, in libvirt's words. */
const domainXml = (
  { name, uid, folder }: Domain,
  accelerator: 'kvm' | 'tcg',
): string => `<domain type='${accelerator === 'kvm' ? 'kvm' : 'qemu'}'>
  <name>${name}</name>
  <uuid>${uid}</uuid>
  <memory unit='MiB'>${MEMORY_MIB}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <loader readonly='yes' type='pflash'>${FIRMWARE_CODE}</loader>
    <nvram template='${FIRMWARE_VARS}'>${folder}/vars.fd</nvram>
  </os>
  <features><acpi/><smm state='off'/><vmport state='off'/></features>
  <cpu mode='${accelerator === 'kvm' ? 'host-passthrough' : 'maximum'}'/>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>${QEMU}</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' discard='unmap'/>
      <source file='${folder}/disk.raw'/>
      <target dev='vda' bus='virtio'/>
      <boot order='1'/>
    </disk>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='${folder}/seed.img'/>
      <target dev='vdb' bus='virtio'/>
      <readonly/>
    </disk>
    <controller type='usb' model='none'/>
    <interface type='bridge'>
      <source bridge='${LIBVIRT_BRIDGE}'/>
      <mac address='${natMac(uid)}'/>
      <model type='virtio'/>
      <rom enabled='no'/>
      <port isolated='yes'/>
    </interface>
    <serial type='unix'><source mode='bind' path='${folder}/serial.sock'/></serial>
    <memballoon model='none'/>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <panic model='isa'/>
  </devices>
</domain>
`;
