/**
 * Real qcow2 files by the real qemu-img: those that are taken give the right bytes, those that would bring a file of this
 * host into a guest never reach qemu-img.
 */
import { execFileSync } from 'node:child_process';
import { createCipheriv, createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ImageDigest, ImageProgress, PreparedImage } from '@eitri/core/contracts';
import { codeOf, errorLine, GIB, isPermanent, MIB } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { ExecaRunner } from '../../../src/host/runner.js';
import { SystemClock } from '../../../src/host/clock.js';
import { ImageCache } from '../../../src/images/image-cache.js';
import { calm, KeepingLogger, someFacts } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

const SECRET = 'a secret of this host';
const isRoot = process.getuid?.() === 0;

function setUp() {
  const folder = tempFolder();
  // As root qemu-img runs as another user, who must pass.
  chmodSync(folder, 0o711);
  const facts = someFacts({ root: isRoot });
  const cache = new ImageCache(new ExecaRunner(), facts, new SystemClock(), new KeepingLogger(), {
    folder: join(folder, 'images'),
    uid: process.getuid?.() ?? 0,
    maxBytes: 0,
  });
  const qemuImg = (...args: string[]) => execFileSync('qemu-img', args, { cwd: folder, stdio: 'pipe' });
  const ensure = (
    name: string,
    more: { readonly digest?: ImageDigest } = {},
    progress: (p: ImageProgress) => void = () => undefined,
  ) => cache.ensure({ kind: 'url', url: `file://${join(folder, name)}`, ...more }, progress, calm());
  /** A raw disk with data at its begin, in its middle and at its end. */
  const disk = (name: string, bytes: number) => {
    const content = Buffer.alloc(bytes);
    for (const at of [0, bytes / 2, bytes - MIB]) noise(String(at), MIB).copy(content, at);
    writeFileSync(join(folder, name), content);
    return sha256(content);
  };
  const kept = () => readdirSync(join(folder, 'images'));
  return { folder, qemuImg, ensure, disk, kept };
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
/** The same bytes for the same seed, and none that compress. */
const noise = (seed: string, bytes: number): Buffer =>
  createCipheriv('aes-128-ctr', seed.padEnd(16), Buffer.alloc(16)).update(Buffer.alloc(bytes));
const contentOf = (image: PreparedImage): string => sha256(readFileSync(image.path));
const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );

describe('a qcow2 image', () => {
  it.each([
    ['plain', []],
    ['compressed by zlib', ['-c']],
    ['compressed by zstd', ['-c', '-o', 'compression_type=zstd']],
    ['with extended L2 entries', ['-o', 'extended_l2=on,cluster_size=128k']],
    ['of version 2', ['-o', 'compat=0.10']],
  ])('%s becomes the raw disk that it holds, sparse and read-only', async (_what, options) => {
    const { qemuImg, ensure, disk } = setUp();
    const content = disk('disk.raw', 64 * MIB);
    qemuImg('convert', '-f', 'raw', '-O', 'qcow2', ...options, 'disk.raw', 'disk.qcow2');
    const seen: ImageProgress['step'][] = [];
    const image = await ensure('disk.qcow2', {}, (p) => seen.push(p.step));
    expect(contentOf(image)).toBe(content);
    expect(image.sizeBytes).toBe(64 * MIB);
    const stats = statSync(image.path);
    expect(stats.blocks * 512).toBeLessThan(8 * MIB);
    expect(stats.mode & 0o777).toBe(0o400);
    expect(stats.uid).toBe(process.getuid?.());
    expect(new Set(seen)).toEqual(new Set(['download', 'convert']));
  });

  it('that is empty keeps its size and takes no room', async () => {
    const { qemuImg, ensure } = setUp();
    qemuImg('create', '-q', '-f', 'qcow2', 'empty.qcow2', '1G');
    const image = await ensure('empty.qcow2');
    const stats = statSync(image.path);
    expect(stats.size).toBe(GIB);
    expect(stats.blocks * 512).toBeLessThan(MIB);
  });

  it.each([
    [
      'backing file',
      (q: (...a: string[]) => unknown) => q('create', '-q', '-f', 'qcow2', '-b', 'secret', '-F', 'raw', 'evil.qcow2'),
    ],
    [
      'external data file',
      (q: (...a: string[]) => unknown) => {
        q('create', '-q', '-f', 'qcow2', '-o', 'data_file=secret.data,data_file_raw=on', 'evil.qcow2', '1M');
      },
    ],
    [
      'encrypted',
      (q: (...a: string[]) => unknown) => {
        const secret = ['--object', 'secret,id=s,data=hunter2', '-o', 'encrypt.format=aes,encrypt.key-secret=s'];
        q('create', '-q', '-f', 'qcow2', ...secret, 'evil.qcow2', '1M');
      },
    ],
  ])('with this: %s; is refused for good, by name, and brings nothing along', async (what, make) => {
    const { folder, qemuImg, ensure, kept } = setUp();
    writeFileSync(join(folder, 'secret'), SECRET.padEnd(MIB));
    make(qemuImg);
    const error = await failure(ensure('evil.qcow2'));
    expect(errorLine(error)).toContain(what);
    expect(codeOf(error)).toBe('ImageUnsupported');
    expect(isPermanent(error)).toBe(true);
    expect(kept()).toEqual([]);
  });

  it('that was cut is refused although convert would take it; with its digest declared it is so for good', async () => {
    const { folder, qemuImg, ensure, disk, kept } = setUp();
    disk('disk.raw', 64 * MIB);
    qemuImg('convert', '-f', 'raw', '-O', 'qcow2', '-c', 'disk.raw', 'cut.qcow2');
    const path = join(folder, 'cut.qcow2');
    truncateSync(path, statSync(path).size - 65_536);
    const error = await failure(ensure('cut.qcow2'));
    expect(codeOf(error)).toBe('ImageUnsupported');
    expect(errorLine(error)).toContain('damaged');
    expect(isPermanent(error)).toBe(false);
    const digest: ImageDigest = { algorithm: 'sha256', hex: sha256(readFileSync(path)) };
    expect(isPermanent(await failure(ensure('cut.qcow2', { digest })))).toBe(true);
    expect(kept()).toEqual([]);
  });

  it('is left alone by five who want it at once: it is converted once', async () => {
    const { qemuImg, ensure, disk, kept } = setUp();
    const content = disk('disk.raw', 16 * MIB);
    qemuImg('convert', '-f', 'raw', '-O', 'qcow2', 'disk.raw', 'disk.qcow2');
    const images = await Promise.all([1, 2, 3, 4, 5].map(() => ensure('disk.qcow2')));
    expect(new Set(images.map((image) => image.path)).size).toBe(1);
    for (const image of images) expect(contentOf(image)).toBe(content);
    expect(kept()).toHaveLength(2);
  });
});

describe('qemu-img as root', () => {
  it('is told apart from a folder that its user may not pass through', async () => {
    const { folder, qemuImg, ensure } = setUp();
    qemuImg('create', '-q', '-f', 'qcow2', 'a.qcow2', '1M');
    mkdirSync(join(folder, 'images'), { recursive: true });
    chmodSync(folder, 0o700);
    const outcome = await failure(ensure('a.qcow2'));
    // Who is not root runs it as itself, and passes.
    expect(errorLine(outcome)).toContain(isRoot ? `chmod o+x ${folder}` : 'it did not fail');
  });
});
