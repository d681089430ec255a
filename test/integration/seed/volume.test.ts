/** Seed volumes by the real xorriso, read back by the tools that guests and operators use. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import type { Runner, VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { describe, expect, it } from 'vitest';
import { ExecaRunner } from '../../../src/host/runner.js';
import { NoCloudSeedSource } from '../../../src/seed/nocloud-seed-source.js';
import { calm } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

const NAMES = ['meta-data', 'network-config', 'user-data', 'vendor-data'];
const hostKey = { privateOpenSsh: 'private\n', publicLine: 'ssh-ed25519 AAAA' };
const USER_DATA = '#cloud-config\npackages: [nginx]\n# ünïcode\n';

async function build(folder: string, env: Readonly<Record<string, string>> = {}, uid = 1): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const real = new ExecaRunner();
  /** An agent that was started in another environment. */
  const runner: Runner = {
    which: real.which,
    run: (request, signal) => real.run({ ...request, env: { ...env, ...request.env } }, signal),
  };
  const seeds = new NoCloudSeedSource(runner, { hostKeys: { ensure: () => Promise.resolve(hostKey) } });
  const spec = { id: 'web-1' as VmId, hostname: 'web-1', sshKeys: ['ssh-ed25519 BBBB'], userData: USER_DATA };
  const path = join(folder, 'seed.img');
  await seeds.build(
    {
      uid: `6f1c1c1e-0000-4000-8000-00000000000${uid}` as VmUid,
      spec: spec as unknown as VmSpec,
      mac: '02:00:00:00:00:01',
      namedMac: '02:00:00:00:00:02',
      path,
      keysFolder: folder,
    },
    calm(),
  );
  return path;
}

const hash = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' });

describe('a seed volume', () => {
  it('is the same bytes in another folder, a second later, in another time zone', async () => {
    const folder = tempFolder();
    const first = await build(join(folder, 'a'), { TZ: 'Pacific/Auckland', LC_ALL: 'de_DE.UTF-8' });
    const second = Math.floor(Date.now() / 1000);
    while (Math.floor(Date.now() / 1000) === second) utimesSync(folder, new Date(), new Date());
    const later = await build(join(folder, 'another', 'and', 'deeper'), { TZ: 'America/Lima' });
    expect(hash(later)).toBe(hash(first));
    expect(hash(await build(join(folder, 'a')))).toBe(hash(first));
    expect(hash(await build(join(folder, 'c'), {}, 2))).not.toBe(hash(first));
  });

  it('is labelled cidata, in lower case', async () => {
    const path = await build(tempFolder());
    expect(run('blkid', '-o', 'value', '-s', 'LABEL', path).trim()).toBe('cidata');
  });

  it.each(['-R', '-J'])('shows its names in full to who reads it by %s', async (names) => {
    const path = await build(tempFolder());
    const listed = run('isoinfo', names, '-f', '-i', path).trim().split('\n');
    expect(listed.sort()).toEqual(NAMES.map((name) => `/${name}`));
  });

  it('holds what was given, byte for byte', async () => {
    const path = await build(tempFolder());
    const read = (name: string) => run('isoinfo', '-R', '-x', `/${name}`, '-i', path);
    expect(read('user-data')).toBe(USER_DATA);
    expect(JSON.parse(read('meta-data'))).toMatchObject({ 'instance-id': '6f1c1c1e-0000-4000-8000-000000000001' });
    expect(Object.keys((JSON.parse(read('network-config')) as { ethernets: object }).ethernets)).toEqual([
      'eth0',
      'eth1',
    ]);
  });
});
