import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { buildArguments, type CommandLine, escaped } from '../../../plugins/qemu/src/arguments.js';

const vm = '/var/lib/eitri-agent/vms/3f1c/guest';

const plain: CommandLine = {
  os: 'linux',
  arch: 'x64',
  accelerator: 'kvm',
  version: { major: 8, minor: 2 },
  id: 'web-1',
  uid: '3f1c2a70-0000-4000-8000-000000000001',
  cpus: 2,
  memoryMib: 2048,
  firmwareCode: '/usr/share/OVMF/OVMF_CODE_4M.fd',
  firmwareVars: `${vm}/vars.fd`,
  rootDisk: `${vm}/disk.raw`,
  seed: `${vm}/seed.img`,
  volumes: [],
  nics: { kind: 'user', mac: '02:aa:bb:cc:dd:01' },
  serialSocket: '/run/eitri-agent/3f1c/serial.sock',
  qmpSocket: '/run/eitri-agent/3f1c/qmp.sock',
  hardware: {},
  limits: {},
};
const arm: CommandLine = { ...plain, arch: 'arm64', firmwareCode: '/usr/share/AAVMF/AAVMF_CODE.fd' };
const tap = {
  kind: 'tap',
  first: { tap: 'eit-1a2b3c4d', mac: '02:aa:bb:cc:dd:01' },
  named: { tap: 'ein-1a2b3c4d', mac: '02:aa:bb:cc:dd:02' },
} as const;

const lines: Readonly<Record<string, CommandLine>> = {
  'x64-kvm-user-ports': plain,
  'x64-tcg': { ...plain, accelerator: 'tcg', cpus: 1, version: { major: 6, minor: 2 } },
  'x64-kvm-tap-named': { ...plain, nics: tap },
  'x64-kvm-volumes-limits': {
    ...plain,
    volumes: ['/var/lib/eitri-agent/volumes/data.raw', '/var/lib/eitri-agent/volumes/a,b.raw'],
    limits: { diskIops: 500, diskBandwidthBytes: 104_857_600 },
    hardware: { smbiosSerial: 'A,1' },
  },
  'x64-kvm-hugepages-shared': { ...plain, hardware: { hugepages: '2MiB', sharedMemory: true } },
  'arm64-kvm-tap': { ...arm, nics: { kind: 'tap', first: tap.first } },
  'arm64-tcg': { ...arm, accelerator: 'tcg' },
  'darwin-arm64-hvf': {
    ...arm,
    os: 'darwin',
    accelerator: 'hvf',
    firmwareCode: '/opt/homebrew/share/qemu/edk2-aarch64-code.fd',
  },
  'darwin-x64-hvf': {
    ...plain,
    os: 'darwin',
    accelerator: 'hvf',
    firmwareCode: '/usr/local/share/qemu/edk2-x86_64-code.fd',
  },
};

describe('the command line', () => {
  test.each(Object.entries(lines))('%s is, byte for byte, what its golden file says', async (name, line) => {
    // One option a line, with its value: a file that people can read and compare.
    const text = `${buildArguments(line)
      .join('\n')
      .replaceAll(/\n(?!-)/g, ' ')}\n`;
    await expect(text).toMatchFileSnapshot(`../../golden/qemu/${name}.txt`);
  });

  test('a volume more changes no device that was there: a guest keeps the names of its NICs and disks', () => {
    const devices = (line: CommandLine): readonly string[] => buildArguments(line).filter((a) => a.includes('addr='));
    const before = devices({ ...plain, nics: tap });
    const after = devices({ ...plain, nics: tap, volumes: ['/v/one', '/v/two'] });
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.slice(before.length)).toEqual([
      'virtio-blk-pci,drive=volume0,addr=0x7',
      'virtio-blk-pci,drive=volume1,addr=0x8',
    ]);
  });

  test('no two devices share a slot, with as many volumes as there may be', () => {
    const args = buildArguments({
      ...arm,
      nics: tap,
      volumes: Array.from({ length: 24 }, (_, i) => `/v/${i.toString()}`),
    });
    const slots = args.flatMap((a) => /addr=(0x[0-9a-f]+)/.exec(a)?.[1] ?? []);
    expect(new Set(slots).size).toBe(slots.length);
    expect(Math.max(...slots.map(Number))).toBeLessThan(0x1f);
  });

  test('ports are never on the command line, where one that is taken would keep the guest from starting', () => {
    expect(buildArguments(plain).join(' ')).not.toContain('hostfwd');
  });

  test('whatever a path holds, its option is read back as that path and nothing more', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(',', 'a', '=', '/'), maxLength: 12 }), (path) => {
        // QEMU's own reading: a doubled comma is one of the value's, a single one ends it.
        const [first, ...rest] = escaped(path)
          .replaceAll(',,', '\0')
          .split(',')
          .map((part) => part.replaceAll('\0', ','));
        expect(rest).toEqual([]);
        expect(first).toBe(path);
      }),
    );
  });
});
