import { describe, expect, it } from 'vitest';
import type { Runner } from '@eitri/core/contracts';
import { isPermanent } from '@eitri/core/kit';
import { readHostFacts, readMachineId, type HostSources } from '../../../src/host/host-info.js';

const never = new AbortController().signal;

function sources(changes: Partial<HostSources> & { readonly stdout?: string } = {}): HostSources {
  const runner: Runner = {
    run: () =>
      changes.stdout === undefined
        ? Promise.reject(new Error('not to be run here'))
        : Promise.resolve({ exitCode: 0, stdout: changes.stdout, stderr: '' }),
    which: () => Promise.resolve(undefined),
  };
  return {
    platform: 'linux',
    arch: 'x64',
    userId: 0,
    hostname: () => 'host-1\n',
    cpus: () => 4,
    memoryBytes: () => 8 * 2 ** 30 + 5,
    readFile: (path) => Promise.resolve(path.endsWith('boot_id') ? 'boot-1\n' : undefined),
    runner,
    ...changes,
  };
}

describe('the facts of a host', () => {
  it('on Linux come from /proc and Node', async () => {
    expect(await readHostFacts(sources(), never)).toEqual({
      os: 'linux',
      arch: 'x64',
      bootId: 'boot-1',
      hostname: 'host-1',
      root: true,
      cpus: 4,
      memoryMib: 8192,
    });
  });

  it('on macOS have the boot session as their boot id', async () => {
    const facts = await readHostFacts(
      sources({ platform: 'darwin', arch: 'arm64', userId: 501, stdout: 'S-1\n' }),
      never,
    );
    expect(facts).toMatchObject({ os: 'darwin', arch: 'arm64', bootId: 'S-1', root: false });
  });

  it('without a readable name have the name unknown', async () => {
    const broken = (): string => {
      throw new Error('no name');
    };
    expect((await readHostFacts(sources({ hostname: broken }), never)).hostname).toBe('unknown');
    expect((await readHostFacts(sources({ hostname: () => ' ' }), never)).hostname).toBe('unknown');
  });

  it.each([
    ['no boot id', { readFile: () => Promise.resolve(undefined) }],
    ['an empty boot id', { readFile: () => Promise.resolve('\n') }],
    ['a boot id that can not be read', { readFile: () => Promise.reject(new Error('EIO')) }],
    ['another system', { platform: 'win32' }],
    ['another processor', { arch: 'ia32' }],
  ])('with %s are refused for good', async (_what, changes: Partial<HostSources>) => {
    const error: unknown = await readHostFacts(sources(changes), never).catch((e: unknown) => e);
    expect(isPermanent(error)).toBe(true);
  });
});

describe('the machine id', () => {
  it('is the first of the known files that has one, not the word of an image before its first boot', async () => {
    const files: Record<string, string> = { '/etc/machine-id': 'uninitialized\n', '/var/lib/dbus/machine-id': 'abc\n' };
    expect(await readMachineId(sources({ readFile: (path) => Promise.resolve(files[path]) }), never)).toBe('abc');
    expect(await readMachineId(sources({ readFile: () => Promise.resolve(undefined) }), never)).toBeUndefined();
  });

  it('on macOS is the platform’s UUID', async () => {
    const stdout = '  "IOPlatformSerialNumber" = "X"\n  "IOPlatformUUID" = "U-1"\n';
    expect(await readMachineId(sources({ platform: 'darwin', stdout }), never)).toBe('U-1');
  });
});
