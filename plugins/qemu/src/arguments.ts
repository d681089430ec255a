/**
 * The command line of a guest's QEMU: pure, and byte for byte the same for the same input, so that golden files hold it
 * (test/golden/qemu).
 *
 * Deliberately not used: `-daemonize` (the sandbox's spawn=deny kills it, and the supervisor starts a session of its
 * own), `-pidfile` and `logfile=` (the agent bounds its logs and records its processes itself), and `hostfwd=` (a port
 * that is taken would keep the guest from starting; ports are published on the running guest).
 */
import type { HardwareSpec, HostArch, HostOs, LimitSpec } from '@eitri/core/contracts';

export type Accelerator = 'kvm' | 'hvf' | 'tcg';

export interface QemuVersion {
  readonly major: number;
  readonly minor: number;
}

export interface TapNic {
  readonly tap: string;
  readonly mac: string;
}

export type GuestNics =
  | { readonly kind: 'user'; readonly mac: string }
  | { readonly kind: 'tap'; readonly first: TapNic; readonly named?: TapNic };

export interface CommandLine {
  readonly os: HostOs;
  readonly arch: HostArch;
  readonly accelerator: Accelerator;
  readonly version: QemuVersion;
  readonly id: string;
  readonly uid: string;
  readonly cpus: number;
  readonly memoryMib: number;
  readonly firmwareCode: string;
  readonly firmwareVars: string;
  readonly rootDisk: string;
  readonly seed: string;
  readonly volumes: readonly string[];
  readonly nics: GuestNics;
  readonly serialSocket: string;
  readonly qmpSocket: string;
  readonly hardware: Pick<HardwareSpec, 'hugepages' | 'sharedMemory' | 'smbiosSerial'>;
  readonly limits: Pick<LimitSpec, 'diskIops' | 'diskBandwidthBytes'>;
}

/** The netdev that ports are published on. */
export const FIRST_NETDEV = 'n0';

/**
 * PCI slots, fixed for ever: a guest names its NICs and orders its disks by them, and neither may change because a
 * volume was added.
 */
const SLOT = {
  rng: 0x2,
  firstNic: 0x3,
  namedNic: 0x4,
  rootDisk: 0x5,
  seed: 0x6,
  firstVolume: 0x7,
  panic: 0x1,
} as const;
/** /dev/vdc to /dev/vdz: the last of them is slot 0x1e, the slot after it is the chipset's. */
export const MAX_VOLUMES = 24;
/** q35's limit without an interrupt remapper. */
export const MAX_CPUS = 255;

/** A value inside a comma-separated option: QEMU reads two commas as one that belongs to the value. */
export const escaped = (value: string): string => value.replaceAll(',', ',,');

/** The option, and its value, that only this guest's process has: it is found again by them. */
export const identityOption = (qmpSocket: string): { readonly option: string; readonly value: string } => ({
  option: '-qmp',
  value: `unix:${escaped(qmpSocket)},server=on,wait=off`,
});

export function machineArguments(
  os: HostOs,
  arch: HostArch,
  accelerator: Accelerator,
  memoryBackend?: string,
): string[] {
  const machine = [
    arch === 'x64' ? 'q35,smm=off,vmport=off' : os === 'darwin' ? 'virt' : 'virt,gic-version=max',
    ...(memoryBackend === undefined ? [] : [`memory-backend=${memoryBackend}`]),
  ];
  return ['-machine', machine.join(','), '-accel', accelerator, '-cpu', cpuModel(arch, accelerator)];
}

function cpuModel(arch: HostArch, accelerator: Accelerator): string {
  if (accelerator !== 'tcg') return 'host';
  // Emulating Arm's real pointer authentication costs half of the speed; the guest can't tell the difference.
  return arch === 'arm64' ? 'max,pauth-impdef=on' : 'max';
}

export function buildArguments(line: CommandLine): readonly string[] {
  const identity = identityOption(line.qmpSocket);
  const backend = memoryBackend(line);
  return [
    '-name',
    `guest=${escaped(line.id)},debug-threads=on`,
    '-uuid',
    line.uid,
    '-nodefaults',
    '-no-user-config',
    '-display',
    'none',
    ...machineArguments(line.os, line.arch, line.accelerator, backend === undefined ? undefined : 'mem0'),
    '-smp',
    `cpus=${line.cpus.toString()},sockets=1,cores=${line.cpus.toString()},threads=1`,
    '-m',
    `size=${line.memoryMib.toString()}M`,
    ...(backend === undefined ? [] : ['-object', backend]),
    // Nothing but the root disk is booted: a blank disk must not fall through to a network's PXE server.
    '-boot',
    'menu=off,strict=on',
    ...firmware(line),
    ...panic(line),
    ...smbios(line),
    '-device',
    `virtio-rng-pci,addr=${hex(SLOT.rng)}`,
    // NIC ORDER IS THE GUEST ABI: the first is eth0, the host's own subnet; a named network's comes second.
    ...nics(line.nics),
    // DISK ORDER IS THE GUEST ABI: root, seed, then the volumes from /dev/vdc on.
    ...disks(line),
    '-chardev',
    `socket,id=ser0,path=${escaped(line.serialSocket)},server=on,wait=off`,
    '-serial',
    'chardev:ser0',
    identity.option,
    identity.value,
    // seccomp exists on Linux only.
    ...(line.os === 'linux'
      ? ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny']
      : []),
  ];
}

function memoryBackend(line: CommandLine): string | undefined {
  const { hugepages, sharedMemory } = line.hardware;
  if (hugepages === undefined && sharedMemory !== true) return undefined;
  return [
    'memory-backend-memfd,id=mem0',
    `size=${line.memoryMib.toString()}M`,
    `share=${sharedMemory === true ? 'on' : 'off'}`,
    // Taken at start: a pool that is too small is then an error now, and not the guest's death later.
    ...(hugepages === undefined
      ? []
      : ['prealloc=on', 'hugetlb=on', `hugetlbsize=${hugepages === '2MiB' ? '2M' : '1G'}`]),
  ].join(',');
}

const firmware = (line: CommandLine): string[] => [
  '-drive',
  `if=pflash,unit=0,format=raw,readonly=on,file=${escaped(line.firmwareCode)}`,
  '-drive',
  `if=pflash,unit=1,format=raw,file=${escaped(line.firmwareVars)}`,
];

function panic(line: CommandLine): string[] {
  const { major, minor } = line.version;
  // A panicked guest otherwise says "running" for ever. Ending with a failure lets the restart policy see it as one.
  const action = major > 7 || (major === 7 && minor >= 1) ? 'exit-failure' : 'shutdown';
  return ['-device', `pvpanic-pci,addr=${hex(SLOT.panic)}`, '-action', `panic=${action}`];
}

const smbios = (line: CommandLine): string[] =>
  line.hardware.smbiosSerial === undefined ? [] : ['-smbios', `type=1,serial=${escaped(line.hardware.smbiosSerial)}`];

function nics(nics: GuestNics): string[] {
  switch (nics.kind) {
    case 'user':
      return [
        '-netdev',
        // docs/adr/0020: without restrict=on a guest reaches what listens on the host's own loopback.
        `user,id=${FIRST_NETDEV},restrict=on,ipv6=off`,
        ...nicDevice(FIRST_NETDEV, nics.mac, SLOT.firstNic),
      ];
    case 'tap':
      return [
        ...tapNetdev(FIRST_NETDEV, nics.first),
        ...nicDevice(FIRST_NETDEV, nics.first.mac, SLOT.firstNic),
        ...(nics.named === undefined
          ? []
          : [...tapNetdev('n1', nics.named), ...nicDevice('n1', nics.named.mac, SLOT.namedNic)]),
      ];
  }
}

const tapNetdev = (id: string, nic: TapNic): string[] => [
  '-netdev',
  `tap,id=${id},ifname=${escaped(nic.tap)},script=no,downscript=no,vhost=off`,
];

// No option ROM: the firmware has a driver of its own, and the file is in a package that need not be there.
const nicDevice = (netdev: string, mac: string, slot: number): string[] => [
  '-device',
  `virtio-net-pci,netdev=${netdev},mac=${mac},addr=${hex(slot)},romfile=`,
];

function disks(line: CommandLine): string[] {
  const limits = throttling(line.limits);
  return [
    ...disk('root', line.rootDisk, `discard=unmap${limits}`, SLOT.rootDisk, ',bootindex=1'),
    ...disk('seed', line.seed, 'readonly=on', SLOT.seed),
    ...line.volumes.flatMap((path, at) =>
      disk(`volume${at.toString()}`, path, `discard=unmap${limits}`, SLOT.firstVolume + at),
    ),
  ];
}

// format=raw is said, never probed: a guest that writes another format's header to its disk would choose how the host
// reads it at the next boot.
const disk = (id: string, path: string, options: string, slot: number, device = ''): string[] => [
  '-drive',
  `if=none,id=${id},format=raw,file=${escaped(path)},${options}`,
  '-device',
  `virtio-blk-pci,drive=${id},addr=${hex(slot)}${device}`,
];

/** One group: the limit is the VM's, whatever number of disks it has. */
function throttling(limits: CommandLine['limits']): string {
  const rates = [
    ...(limits.diskIops === undefined ? [] : [`throttling.iops-total=${limits.diskIops.toString()}`]),
    ...(limits.diskBandwidthBytes === undefined
      ? []
      : [`throttling.bps-total=${limits.diskBandwidthBytes.toString()}`]),
  ];
  return rates.length === 0 ? '' : `,${rates.join(',')},throttling.group=vm`;
}

const hex = (slot: number): string => `0x${slot.toString(16)}`;
