import { describe, expect, test } from 'vitest';
import { sampleSpec } from '@eitri/conformance';
import type { VmSpec } from '@eitri/core/contracts';
import { capabilitiesOf } from '../../../plugins/qemu/src/capabilities.js';
import { refusalsOf } from '../../../plugins/qemu/src/spec-check.js';

const user = capabilitiesOf({ os: 'linux', root: true }, 'user', undefined);
const tap = capabilitiesOf({ os: 'linux', root: true }, 'plugin', undefined);
const mac = capabilitiesOf({ os: 'darwin', root: false }, 'user', undefined);
const volumes = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `v${i.toString()}`, sizeGib: 1 }));

describe('what a spec may ask for', () => {
  test.each<[string, Partial<VmSpec>, RegExp]>([
    ['a TPM', { hardware: { tpm: true } }, /hardware\.tpm is not available/],
    ['vsock', { hardware: { vsock: true } }, /hardware\.vsock is not available/],
    ['pinned processors', { hardware: { cpuAffinity: { 0: [1] } } }, /hardware\.cpuAffinity is not available/],
    ['a network limit', { limits: { netBandwidthBits: 1 } }, /limits\.netBandwidth is not available/],
    ['a named network', { networks: [{ name: 'lab' }] }, /networks is not available .*namedNetworks/],
    ['more vCPUs than the machine has', { cpus: 256 }, /cpus 256 is more than/],
    ['a volume past /dev/vdz', { volumes: volumes(25) }, /at most 24/],
    [
      'a serial that cloud-init takes for configuration',
      { hardware: { smbiosSerial: 'ds=nocloud;s=http://x' } },
      /ds=nocloud/,
    ],
    ['a serial with a line break', { hardware: { smbiosSerial: 'a\nb' } }, /printable/],
  ])('%s on the user-mode network: it is refused by name', (_, changes, sentence) => {
    expect(refusalsOf(sampleSpec('web-1', changes), user).join('; ')).toMatch(sentence);
  });

  test('two named networks: one is too many', () => {
    expect(refusalsOf(sampleSpec('web-1', { networks: [{ name: 'a' }] }), tap)).toEqual([]);
    expect(refusalsOf(sampleSpec('web-1', { networks: [{ name: 'a' }, { name: 'b' }] }), tap)).toHaveLength(1);
  });

  test('all that is possible at once: nothing is refused', () => {
    const spec = sampleSpec('web-1', {
      cpus: 255,
      volumes: volumes(24),
      hardware: { hugepages: '2MiB', sharedMemory: true, smbiosSerial: 'A,1' },
      limits: { diskIops: 1, diskBandwidthBytes: 1 },
    });
    expect(refusalsOf(spec, tap)).toEqual([]);
    // Linux's own kinds of memory.
    expect(refusalsOf(spec, mac)).toHaveLength(2);
  });
});

test('run by root: the backend says what a break-out would reach, and else it does not', () => {
  expect(JSON.stringify(user.notes)).toContain('runs as root');
  expect(JSON.stringify(mac.notes)).not.toContain('runs as root');
});
