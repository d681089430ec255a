import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunRequest, RunResult, VmUid } from '@eitri/core/contracts';
import { codeOf, errorLine, GIB, isPermanent } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { copyArgs } from '../../../src/disks/disk-files.js';
import type { Reflink } from '../../../src/disks/disk-files.js';
import { HostDiskService } from '../../../src/disks/host-disk-service.js';
import { SystemRandom } from '../../../src/host/clock.js';
import { calm, ScriptedRunner, someFacts } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

const uid = (n: number): VmUid => `00000000-0000-4000-8000-00000000000${n}` as VmUid;
const [A, B] = [uid(1), uid(2)];

type Copy = (request: RunRequest) => Promise<Partial<RunResult>>;

const plainCopy: Copy = (request) => {
  const [from = '', to = ''] = request.args.slice(-2);
  copyFileSync(from, to);
  return Promise.resolve({});
};

/** A file system that can't clone, whatever the temporary folder's can. */
const noReflink =
  (code = 'ENOTSUP') =>
  () =>
    Promise.reject(Object.assign(new Error(code), { code }));

function setUp(copy = plainCopy, reflink: Reflink = noReflink()) {
  const folder = tempFolder();
  const volumes = join(folder, 'volumes');
  const runner = new ScriptedRunner(['cp'], copy);
  const disks = new HostDiskService(runner, someFacts(), new SystemRandom(), { volumesFolder: volumes, reflink });
  const base = join(folder, 'base.raw');
  writeFileSync(base, 'image', { mode: 0o400 });
  const path = join(folder, 'disk.raw');
  const clone = (more: { readonly sizeGib?: number; readonly basePath?: string } = {}, signal = calm()) =>
    disks.cloneRootDisk({ uid: A, basePath: base, path, ...more }, signal);
  const volume = (who: VmUid, name = 'data', sizeGib = 1) => disks.ensureVolume({ uid: who, name, sizeGib }, calm());
  return { folder, volumes, disks, base, path, clone, volume, runner };
}

const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );

describe('a root disk', () => {
  it('is the image, grown, and writable for its owner alone', async () => {
    const { path, clone } = setUp();
    expect(await clone({ sizeGib: 3 })).toEqual({ sizeBytes: 3 * GIB });
    expect(statSync(path).size).toBe(3 * GIB);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(path).blocks * 512).toBeLessThan(2 ** 20);
  });

  it('replaces one that stands, and a torn one beside it', async () => {
    const { path, clone } = setUp();
    writeFileSync(path, 'before');
    writeFileSync(`${path}.partial`, 'torn');
    await clone();
    expect(statSync(path).size).toBe(GIB);
    expect(existsSync(`${path}.partial`)).toBe(false);
  });

  it('that failed leaves what stood and nothing beside it', async () => {
    const { folder, path, clone } = setUp();
    writeFileSync(path, 'before');
    const error = await failure(clone({ basePath: join(folder, 'missing.raw') }));
    expect(errorLine(error)).toContain('missing.raw');
    expect(isPermanent(error)).toBe(false);
    expect(readFileSync(path, 'utf8')).toBe('before');
  });

  it('whose copy failed half-way leaves nothing beside', async () => {
    const { folder, clone } = setUp((request) => {
      writeFileSync(request.args.at(-1) ?? '', 'ha');
      return Promise.reject(new Error('no space left'));
    });
    expect(errorLine(await failure(clone()))).toContain('no space left');
    expect(readdirSync(folder)).toEqual(['base.raw']);
  });

  it('that was aborted leaves nothing', async () => {
    const stop = new AbortController();
    const { folder, clone } = setUp((request) => {
      stop.abort(new Error('enough'));
      return plainCopy(request);
    });
    expect(errorLine(await failure(clone({}, stop.signal)))).toBe('enough');
    expect(readdirSync(folder)).toEqual(['base.raw']);
  });

  it('is a clone where the file system can: nothing is copied', async () => {
    const { clone, runner } = setUp(plainCopy, async (from, to) => {
      await copyFile(from, to);
    });
    await clone();
    expect(runner.requests).toEqual([]);
  });

  it('that could not be cloned for another reason is not copied after it', async () => {
    const { clone, runner } = setUp(plainCopy, noReflink('ENOSPC'));
    expect(errorLine(await failure(clone()))).toContain('ENOSPC');
    expect(runner.requests).toEqual([]);
  });

  it('out of range or below its image makes nothing', async () => {
    const { folder, base, clone } = setUp();
    truncateSync(base, 0);
    truncateSync(base, 2 * GIB + 512);
    expect(codeOf(await failure(clone({ sizeGib: 2 })))).toBe('DiskTooSmall');
    expect(codeOf(await failure(clone({ sizeGib: 2 ** 34 + 10 })))).toBe('SpecInvalid');
    expect(readdirSync(folder)).toEqual(['base.raw']);
  });
});

describe('copying without a reflink', () => {
  it('keeps holes on Linux, and is plain on macOS', () => {
    expect(copyArgs(someFacts(), '/a', '/b')).toEqual(['--reflink=auto', '--sparse=always', '--', '/a', '/b']);
    expect(copyArgs(someFacts({ os: 'darwin' }), '/a', '/b')).toEqual(['/a', '/b']);
  });
});

describe('a disk that stands', () => {
  it('grows, again and again, and never shrinks', async () => {
    const { disks, path, clone } = setUp();
    await clone();
    for (let i = 0; i < 10; i++) await disks.growDisk(path, 2, calm());
    expect(await disks.sizeOf(path)).toBe(2 * GIB);
    const error = await failure(disks.growDisk(path, 1, calm()));
    expect(codeOf(error)).toBe('DiskTooSmall');
    expect(isPermanent(error)).toBe(true);
    expect(await disks.sizeOf(path)).toBe(2 * GIB);
  });

  it('has no size where there is none, and does not grow there', async () => {
    const { disks, folder } = setUp();
    expect(await disks.sizeOf(join(folder, 'none.raw'))).toBeUndefined();
    expect(isPermanent(await failure(disks.growDisk(join(folder, 'none.raw'), 1, calm())))).toBe(false);
  });

  it('that is a link to something else is not used', async () => {
    const { disks, folder } = setUp();
    writeFileSync(join(folder, 'precious'), 'x');
    symlinkSync(join(folder, 'precious'), join(folder, 'link.raw'));
    expect(isPermanent(await failure(disks.growDisk(join(folder, 'link.raw'), 1, calm())))).toBe(true);
    expect(statSync(join(folder, 'precious')).size).toBe(1);
  });
});

describe('a volume', () => {
  it('is made once, sparse, and found again by its VM', async () => {
    const { volume, volumes } = setUp();
    const { path } = await volume(A);
    expect(path).toBe(join(volumes, 'data.raw'));
    writeFileSync(path, 'written', { flag: 'r+' });
    for (let i = 0; i < 10; i++) expect(await volume(A)).toEqual({ path });
    expect(readFileSync(path).subarray(0, 7).toString()).toBe('written');
    expect(statSync(path)).toMatchObject({ size: GIB });
    expect(readdirSync(volumes)).toEqual(['data.json', 'data.raw']);
  });

  it('of one VM is refused to another, who is told the holder, until it is released', async () => {
    const { volume, disks } = setUp();
    const { path } = await volume(A);
    writeFileSync(path, 'kept', { flag: 'r+' });
    const error = await failure(volume(B));
    expect(errorLine(error)).toContain(A);
    expect(isPermanent(error)).toBe(true);
    for (let i = 0; i < 3; i++) await disks.releaseVolumes(A, calm());
    await volume(B);
    expect(readFileSync(path).subarray(0, 4).toString()).toBe('kept');
    expect(isPermanent(await failure(volume(A)))).toBe(true);
  });

  it('wanted by many at once goes to one', async () => {
    const { volumes } = setUp();
    const services = [1, 2, 3, 4, 5, 6].map(
      () => new HostDiskService(new ScriptedRunner(), someFacts(), new SystemRandom(), { volumesFolder: volumes }),
    );
    const outcomes = await Promise.allSettled(
      services.map((service, i) => service.ensureVolume({ uid: uid(i), name: 'data', sizeGib: 1 }, calm())),
    );
    expect(outcomes.filter((o) => o.status === 'fulfilled')).toHaveLength(1);
    expect(readdirSync(volumes)).toEqual(['data.json', 'data.raw']);
  });

  it('grows, and never shrinks; a refusal claims nothing', async () => {
    const { volume, disks } = setUp();
    const { path } = await volume(A, 'data', 1);
    await volume(A, 'data', 3);
    expect(statSync(path).size).toBe(3 * GIB);
    expect(codeOf(await failure(volume(A, 'data', 2)))).toBe('DiskTooSmall');
    await disks.releaseVolumes(A, calm());
    expect(codeOf(await failure(volume(B, 'data', 2)))).toBe('DiskTooSmall');
    await volume(A, 'data', 3);
  });

  it.each(['..', '../x', 'a/b', '', 'A', 'x'.repeat(64), '.hidden'])(
    'called %j is refused, and touches nothing',
    async (name) => {
      const { volume, folder } = setUp();
      const error = await failure(volume(A, name));
      expect(codeOf(error)).toBe('SpecInvalid');
      expect(isPermanent(error)).toBe(true);
      expect(readdirSync(folder)).toEqual(['base.raw']);
    },
  );

  it.each(['', '{', '{}', '\0\0\0'])("whose claim reads %j is nobody else's: it is refused and kept", async (text) => {
    const { volume, volumes, disks } = setUp();
    mkdirSync(volumes);
    writeFileSync(join(volumes, 'data.json'), text);
    const error = await failure(volume(A));
    expect(errorLine(error)).toContain('remove it once no VM uses the volume');
    await disks.releaseVolumes(A, calm());
    expect(readFileSync(join(volumes, 'data.json'), 'utf8')).toBe(text);
  });

  it('is not there when nobody ever had one: releasing is nothing', async () => {
    await setUp().disks.releaseVolumes(A, calm());
  });
});
