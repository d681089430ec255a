import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunRequest, RunResult, VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { errorLine, isPermanent } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { NoCloudSeedSource } from '../../../src/seed/nocloud-seed-source.js';
import { calm, ScriptedRunner } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

type Master = (request: RunRequest) => Promise<Partial<RunResult>>;

const writes: Master = (request) => {
  writeFileSync(request.args.at(-2) ?? '', 'volume');
  return Promise.resolve({});
};

function setUp(master: Master = writes, known = ['xorriso']) {
  const folder = tempFolder();
  const path = join(folder, 'seed.img');
  let keysMade = 0;
  const hostKeys = {
    ensure: () => {
      keysMade++;
      return Promise.resolve({ privateOpenSsh: 'private', publicLine: 'ssh-ed25519 AAAA' });
    },
  };
  const runner = new ScriptedRunner(known, master);
  const seeds = new NoCloudSeedSource(runner, { hostKeys });
  const build = (userData?: string, signal = calm()) => {
    const spec = {
      id: 'web-1' as VmId,
      hostname: 'web-1',
      sshKeys: [],
      ...(userData === undefined ? {} : { userData }),
    };
    const uid = '6f1c1c1e-0000-4000-8000-000000000001' as VmUid;
    const request = { uid, spec: spec as unknown as VmSpec, mac: '02:00:00:00:00:01', path, keysFolder: folder };
    return seeds.build(request, signal);
  };
  return { folder, path, runner, build, keysMade: () => keysMade };
}

const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );

describe('a seed', () => {
  it('is built beside and put in its place, for its owner alone', async () => {
    const { folder, path, build } = setUp();
    expect(await build()).toEqual({ hostKeys: ['ssh-ed25519 AAAA'] });
    expect(readdirSync(folder)).toEqual(['seed.img']);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('is built with the clock, the time zone and the settings of xorriso kept out', async () => {
    const { build, runner } = setUp();
    await build();
    expect(runner.requests[0]).toMatchObject({ command: 'xorriso', env: { SOURCE_DATE_EPOCH: '0', TZ: 'UTC' } });
    expect(runner.requests[0]?.args.slice(0, 8)).toEqual([
      '-no_rc',
      '-as',
      'mkisofs',
      '-quiet',
      '-V',
      'cidata',
      '-J',
      '-r',
    ]);
  });

  it('that failed leaves nothing: no private key lies about', async () => {
    const { folder, build } = setUp(() => Promise.reject(new Error('disk full')));
    const error = await failure(build());
    expect(errorLine(error)).toContain('build the seed of web-1: disk full');
    expect(isPermanent(error)).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('without xorriso is a permanent error that names the package', async () => {
    const error = await failure(setUp(writes, []).build());
    expect(errorLine(error)).toContain('install the package xorriso');
    expect(isPermanent(error)).toBe(true);
  });

  it('with user-data that nobody would run is refused before anything is made', async () => {
    const { path, build, keysMade } = setUp();
    expect(isPermanent(await failure(build('hello')))).toBe(true);
    expect(keysMade()).toBe(0);
    expect(existsSync(path)).toBe(false);
  });

  it('whose user-data brings host keys vouches for none', async () => {
    const { build } = setUp();
    expect(await build('#cloud-config\nssh_keys: {ed25519_private: x}\n')).toEqual({ hostKeys: [] });
  });

  it('that was aborted is not built', async () => {
    const { folder, build } = setUp();
    expect(errorLine(await failure(build(undefined, AbortSignal.abort(new Error('enough')))))).toBe('enough');
    expect(readdirSync(folder)).toEqual([]);
  });
});
