import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT, exitCodeOf } from '@eitri/core/kit';
import { checkMemoryReserve, makeConfig, readConfigFile } from '../../../src/app/config.js';
import { tempFolder } from '../../support/temp.js';

const linux = { os: 'linux' } as const;
const of = (flags: Record<string, unknown>, more: { env?: Record<string, string>; file?: object } = {}) =>
  makeConfig({ flags, env: more.env ?? {}, file: more.file ?? {} }, linux);

function refusalOf(flags: Record<string, unknown>, os: 'linux' | 'darwin' = 'linux'): string {
  try {
    makeConfig({ flags, env: {}, file: {} }, { os });
  } catch (error) {
    expect(exitCodeOf(error)).toBe(EXIT.usage);
    return (error as Error).message;
  }
  throw new Error('it was taken');
}

describe('without any setting the agent', () => {
  it('has the documented defaults', () => {
    expect(of({})).toMatchObject({
      'ch-bin': 'cloud-hypervisor',
      firmware: '/usr/share/eitri/CLOUDHV.fd',
      'vfkit-bin': 'vfkit',
      'bridge-cidr': '',
      'bootstrap-url': 'https://eitri.sh/dl/latest/manifest.json',
      'tombstone-grace': 300_000,
      'vanish-grace': 3_600_000,
      'vm-timeout': 900_000,
      'image-cache-max-gb': 20,
      'max-concurrent-creates': 4,
      'max-vcpus': 0,
      'max-mem-mb': 0,
      'max-disk-gb': 0,
      'memory-reserve': 0,
      'host-network': [],
      adopt: false,
      warnings: [],
    });
  });
});

describe('a setting', () => {
  it('is taken from the flag before the environment before the file', () => {
    const env = { EITRI_MAX_VCPUS: '2', EITRI_VM_TIMEOUT: '2m' };
    const file = { 'max-vcpus': ['3'], 'vm-timeout': ['3m'], 'vanish-grace': ['0'] };
    const config = of({ 'max-vcpus': '1' }, { env, file });
    expect(config).toMatchObject({ 'max-vcpus': 1, 'vm-timeout': 120_000, 'vanish-grace': 0 });
  });

  it('of a memory reserve is MiB or a size, and must leave the VMs something', () => {
    expect(of({ 'memory-reserve': '512' })['memory-reserve']).toBe(512);
    const config = of({ 'memory-reserve': '2GiB' });
    expect(config['memory-reserve']).toBe(2_048);
    checkMemoryReserve(config, { memoryMib: 2_049 });
    expect(() => {
      checkMemoryReserve(config, { memoryMib: 2_048 });
    }).toThrow("--memory-reserve 2048 MiB leaves no VM anything of this host's 2048 MiB: make it smaller");
  });

  it.each(['linux', 'darwin'] as const)('that no backend of this host uses is taken on %s all the same', (os) => {
    const flags = {
      'ch-bin': '/a',
      firmware: '/b',
      'vfkit-bin': '/c',
      'bridge-cidr': '10.1.0.0/16',
      'bootstrap-url': 'https://x/',
    };
    expect(makeConfig({ flags, env: {}, file: {} }, { os })).toMatchObject(flags);
  });

  it('may be emptied where empty means something', () => {
    expect(of({ 'bootstrap-url': '' })['bootstrap-url']).toBe('');
  });

  it.each([
    [{ 'max-vcpus': '-1' }, 'resource cap --max-vcpus must be >= 0 (0 = unlimited), got -1'],
    [{ 'max-disk-gb': 'ten' }, '--max-disk-gb: want a whole number, got "ten"'],
    [
      { 'memory-reserve': '2 apples' },
      '--memory-reserve: want MiB as a whole number, or a size such as 2GiB, got "2 apples"',
    ],
    [{ 'vm-timeout': '5' }, '--vm-timeout: want a duration such as 90s, 5m or 1h30m, got "5"'],
    [{ 'vm-timeout': '-5m' }, '--vm-timeout: want a duration of 0 or more, got "-5m"'],
    [{ 'bridge-cidr': 'banana' }, '--bridge-cidr: want an IPv4 subnet such as 10.77.1.0/24, or nothing, got "banana"'],
    [{ 'bridge-cidr': '10.0.0.0/33' }, '--bridge-cidr: want'],
    [{ 'bridge-cidr': '10.0.0.300/24' }, '--bridge-cidr: want'],
    [{ 'bridge-cidr': '10.0.0.0' }, '--bridge-cidr: want'],
    [{ 'bootstrap-url': 'foo' }, '--bootstrap-url: want an https:// URL, or nothing, got "foo"'],
    [{ 'bootstrap-url': 'http://eitri.sh/' }, '--bootstrap-url: want'],
    [{ 'host-network': ['lab'] }, '--host-network: want name=bridge, got "lab"'],
    [{ 'host-network': ['lab='] }, '--host-network: want name=bridge, got "lab="'],
    [{ 'host-network': ['nat=br0'] }, '--host-network: invalid network name "nat"'],
    [{ 'host-network': ['lab=br0', 'lab=br1'] }, '--host-network: network "lab" declared twice'],
    [{ 'guest-network': 'a/b' }, '--guest-network: want "user" or the name of a network plugin, got "a/b"'],
    [{ 'log-level': 'loud' }, '--log-level: want debug, info, warn, error, got "loud"'],
    [{ 'max-concurrent-creates': '-2' }, '--max-concurrent-creates: want a whole number, 0 or more, got "-2"'],
  ])('%j is refused in its own words', (flags, message) => {
    expect(refusalOf(flags)).toContain(message);
  });

  it('of several bad caps the first in order is told', () => {
    expect(refusalOf({ 'max-disk-gb': '-1', 'max-vcpus': '-1' })).toContain('--max-vcpus');
  });

  it('for named networks is taken on Linux, sorted or not, and refused on macOS', () => {
    expect(of({ 'host-network': ['lab=br1', 'dmz=br0'] })['host-network']).toEqual([
      ['lab', 'br1'],
      ['dmz', 'br0'],
    ]);
    expect(refusalOf({ 'host-network': ['lab=br1'] }, 'darwin')).toContain('only a Linux host can bridge guests');
  });

  it.each(['-1', '1048577'])('of an image cache of %s GiB turns eviction off, with a warning', (size) => {
    const config = of({ 'image-cache-max-gb': size });
    expect(config['image-cache-max-gb']).toBe(0);
    expect(config.warnings.join()).toContain('--image-cache-max-gb');
  });
});

describe('a configuration file', () => {
  const file = (text: string): string => {
    const path = join(tempFolder(), 'agent.yaml');
    writeFileSync(path, text);
    return path;
  };

  it('holds the flags’ names', async () => {
    const path = file('max-vcpus: 4\nhost-network: [lab=br1, dmz=br0]\nadopt: true\n');
    const config = makeConfig({ flags: {}, env: {}, file: await readConfigFile(path) }, linux);
    expect(config).toMatchObject({ 'max-vcpus': 4, adopt: true });
    expect(config['host-network']).toHaveLength(2);
  });

  it('may be empty', async () => {
    expect(await readConfigFile(file(''))).toEqual({});
  });

  it.each([
    ['max-vcpu: 4', 'unknown setting "max-vcpu"; did you mean max-vcpus?'],
    ['- a', 'want a mapping'],
    ['local: {a: b}', 'local: want a plain value'],
    ['a: [', "can't be read"],
  ])('%j is refused with what is wrong', async (text, message) => {
    const reading = readConfigFile(file(text));
    await expect(reading).rejects.toThrow(message);
    await expect(reading.catch(exitCodeOf)).resolves.toBe(EXIT.badConfiguration);
  });

  it('that is not there is an error', async () => {
    await expect(readConfigFile('/nowhere/agent.yaml')).rejects.toThrow("can't be read");
  });
});
