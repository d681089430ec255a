import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ManualClock } from '@eitri/conformance';
import type { ImageDigest, ImageProgress, ImageRef, PreparedImage } from '@eitri/core/contracts';
import { codeOf, errorLine, GIB, isPermanent } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { ImageCache, type ImageCacheOptions } from '../../../src/images/image-cache.js';
import { cutAfter, fileServer, wellServed, type Handler } from '../../support/file-server.js';
import { calm, KeepingLogger, ScriptedRunner, someFacts } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

/** Nobody of this machine: neither root nor who runs the tests. */
const STRANGER = 54_321;
const LIMIT_MS = 10 * 60_000;

const body = (seed: string, bytes = 300_000): Buffer => Buffer.alloc(bytes, createHash('sha512').update(seed).digest());
const sha256 = (bytes: Buffer): ImageDigest => ({
  algorithm: 'sha256',
  hex: createHash('sha256').update(bytes).digest('hex'),
});
const url = (
  at: string,
  more: { readonly digest?: ImageDigest; readonly format?: 'raw' | 'qcow2' } = {},
): ImageRef => ({
  kind: 'url',
  url: at,
  ...more,
});

function setUp(options: Partial<ImageCacheOptions> = {}) {
  const folder = join(tempFolder(), 'images');
  const clock = new ManualClock();
  const log = new KeepingLogger();
  const whole = {
    folder,
    uid: process.getuid?.() ?? 0,
    maxBytes: 20 * GIB,
    freeBytes: () => Promise.resolve(100 * GIB),
  };
  const cache = new ImageCache(new ScriptedRunner(), someFacts(), clock, log, { ...whole, ...options });
  const ensure = (ref: ImageRef, signal = calm(), progress: (p: ImageProgress) => void = () => undefined) =>
    cache.ensure(ref, progress, signal);
  const files = () => readdirSync(folder).sort();
  return { folder, clock, log, cache, ensure, files };
}

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => {
      throw new Error('it did not fail');
    },
    (error: unknown) => error,
  );
}

/** The digest of what stands there: comparing large buffers byte by byte takes seconds when they are equal. */
const contentOf = (image: PreparedImage): string => sha256(readFileSync(image.path)).hex;

describe('one download for all', () => {
  it('serves five waiters with one request, and one who leaves in the middle harms nobody', async () => {
    const { ensure, files } = setUp();
    const bytes = body('five');
    const gate = new Gate();
    const server = await fileServer(async (_request, response) => {
      response.writeHead(200, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, 1000));
      await gate.opened;
      response.end(bytes.subarray(1000));
    });
    const leaver = new AbortController();
    const waiters = [1, 2, 3, 4].map(() => ensure(url(`${server.url}/a`)));
    const left = failure(ensure(url(`${server.url}/a`), leaver.signal));
    await until(() => server.requests.length === 1);
    leaver.abort(new Error('not me'));
    expect(errorLine(await left)).toBe('not me');
    gate.open();
    const images = await Promise.all(waiters);
    for (const image of images) expect(contentOf(image)).toBe(sha256(bytes).hex);
    expect(server.requests).toHaveLength(1);
    expect(files()).toEqual([`sha256-${sha256(bytes).hex}.json`, `sha256-${sha256(bytes).hex}.raw`]);
  });

  it('ends when the last waiter leaves', async () => {
    const { ensure } = setUp();
    let closed = false;
    const server = await fileServer((request, response) => {
      request.on('close', () => (closed = true));
      response.writeHead(200, { 'content-length': 1000 });
      response.write('x');
    });
    const [a, b] = [new AbortController(), new AbortController()];
    const both = Promise.allSettled([ensure(url(server.url), a.signal), ensure(url(server.url), b.signal)]);
    await until(() => server.requests.length === 1);
    a.abort();
    b.abort();
    await both;
    await until(() => closed);
  });

  it('is given up after ten minutes, and a retry is worth it', async () => {
    const { ensure, clock } = setUp();
    const server = await fileServer((_request, response) => {
      response.writeHead(200, { 'content-length': 9 }).write('x');
    });
    const failed = failure(ensure(url(server.url)));
    await until(() => server.requests.length === 1);
    await clock.advance(LIMIT_MS);
    const error = await failed;
    expect(errorLine(error)).toContain('given up after 600 s');
    expect(isPermanent(error)).toBe(false);
  });
});

describe('a body that is not whole', () => {
  it('is refused when it is shorter than announced, and nothing is kept as an image', async () => {
    const { ensure, files } = setUp();
    const server = await fileServer(cutAfter(body('cut'), 1000));
    const error = await failure(ensure(url(server.url)));
    // How many of the sent bytes arrive before the connection breaks is the kernel's matter.
    expect(errorLine(error)).toMatch(/broke off after \d+ of 300000 bytes/);
    expect(isPermanent(error)).toBe(false);
    expect(files().filter((name) => !name.endsWith('.partial'))).toEqual([]);
  });

  it('is refused without a length, framing or digest: nobody can tell', async () => {
    const { ensure, files } = setUp();
    const server = await fileServer(unframed(body('cut').subarray(0, 1000)));
    const error = await failure(ensure(url(server.url)));
    expect(codeOf(error)).toBe('ImageUnsupported');
    expect(errorLine(error)).toContain('declare its sha256');
    expect(files()).toEqual([]);
  });

  it('is accepted without a length when its digest is right, and refused when it is cut', async () => {
    const { ensure } = setUp();
    const bytes = body('whole');
    const server = await fileServer(unframed(bytes));
    expect(contentOf(await ensure(url(server.url, { digest: sha256(bytes) })))).toBe(sha256(bytes).hex);
    server.handler = unframed(bytes.subarray(0, 1000));
    expect(codeOf(await failure(ensure(url(server.url, { digest: sha256(body('other')) }))))).toBe(
      'ImageDigestMismatch',
    );
  });

  it('is accepted when chunks frame it', async () => {
    const { ensure } = setUp();
    const bytes = body('chunks');
    const server = await fileServer((_request, response) => {
      response.write(bytes.subarray(0, 10));
      response.end(bytes.subarray(10));
    });
    expect(contentOf(await ensure(url(server.url)))).toBe(sha256(bytes).hex);
  });

  it('goes on where it broke off, by range and validator, and its digest is that of the whole', async () => {
    const { ensure, clock } = setUp();
    const bytes = body('resume');
    const server = await fileServer(cutAfter(bytes, 100_000, { etag: '"v1"' }));
    const image = ensure(url(server.url, { digest: sha256(bytes) }));
    await until(() => clock.sleeping === 2, { what: 'the wait before the second request, beside the time limit' });
    server.handler = wellServed(bytes, { etag: '"v1"' });
    await clock.advance(1_000);
    expect(contentOf(await image)).toBe(sha256(bytes).hex);
    expect(server.requests[1]?.headers).toMatchObject({
      range: expect.stringMatching(/^bytes=[1-9]\d*-$/) as string,
      'if-range': '"v1"',
    });
  });

  it('goes on at the next try too', async () => {
    const { ensure, clock } = setUp();
    const bytes = body('later');
    const server = await fileServer(cutAfter(bytes, 100_000, { etag: '"v1"' }));
    const waiter = new AbortController();
    const first = failure(ensure(url(server.url), waiter.signal));
    await until(() => clock.sleeping === 2, { what: 'broken off, with something to go on from' });
    waiter.abort(new Error('enough'));
    await first;
    server.handler = wellServed(bytes, { etag: '"v1"' });
    expect(contentOf(await ensure(url(server.url)))).toBe(sha256(bytes).hex);
    expect(server.requests.at(-1)?.headers.range).toMatch(/^bytes=[1-9]\d*-$/);
  });

  it('begins anew when the file changed meanwhile: two halves of two files are never one', async () => {
    const { ensure, clock } = setUp();
    const server = await fileServer(cutAfter(body('old'), 100_000, { etag: '"v1"' }));
    const image = ensure(url(server.url));
    await until(() => clock.sleeping === 2);
    server.handler = wellServed(body('new'), { etag: '"v2"' });
    await clock.advance(1_000);
    expect(contentOf(await image)).toBe(sha256(body('new')).hex);
  });

  it('begins anew where the server offers no validator', async () => {
    const { ensure } = setUp();
    const bytes = body('none');
    const server = await fileServer(cutAfter(bytes, 100_000));
    await failure(ensure(url(server.url)));
    server.handler = wellServed(bytes);
    expect(contentOf(await ensure(url(server.url)))).toBe(sha256(bytes).hex);
    expect(server.requests[1]?.headers.range).toBeUndefined();
  });
});

describe('what a server answers', () => {
  it.each([
    [404, 'ImageNotFound', true],
    [410, 'ImageNotFound', true],
    [500, undefined, false],
    [503, undefined, false],
    [429, undefined, false],
  ] as const)('with %i is said with its status', async (status, code, lasting) => {
    const { ensure, files } = setUp();
    const server = await fileServer((_request, response) => void response.writeHead(status).end('no'));
    const error = await failure(ensure(url(`${server.url}/x?token=secret`)));
    expect(codeOf(error)).toBe(code);
    expect(isPermanent(error)).toBe(lasting);
    expect(errorLine(error)).toContain(String(status));
    expect(errorLine(error)).not.toContain('secret');
    expect(files()).toEqual([]);
  });

  it('coded is refused: its bytes are not the file', async () => {
    const { ensure, files } = setUp();
    const server = await fileServer((_request, response) => {
      const packed = gzipSync(body('gzip'));
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length }).end(packed);
    });
    const error = await failure(ensure(url(server.url)));
    expect(server.requests[0]?.headers['accept-encoding']).toBe('identity');
    expect(codeOf(error)).toBe('ImageUnsupported');
    expect(errorLine(error)).toContain('gzip');
    expect(files()).toEqual([]);
  });

  it('with a redirect is followed, a few times', async () => {
    const { ensure } = setUp();
    const server = await fileServer((request, response) => {
      if (request.url === '/there') return wellServed(body('there'))(request, response);
      response.writeHead(302, { location: request.url === '/here' ? '/there' : '/round' }).end();
      return undefined;
    });
    expect(contentOf(await ensure(url(`${server.url}/here`)))).toBe(sha256(body('there')).hex);
    expect(errorLine(await failure(ensure(url(`${server.url}/round`))))).toContain('more than 5 redirects');
  });

  it('with a redirect to a file of this host is refused', async () => {
    const { ensure } = setUp();
    const server = await fileServer(
      (_request, response) => void response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
    );
    expect(isPermanent(await failure(ensure(url(server.url))))).toBe(true);
  });

  it('not at all is worth a retry', async () => {
    const { ensure } = setUp();
    const server = await fileServer(() => undefined);
    await server.stop();
    expect(isPermanent(await failure(ensure(url(server.url))))).toBe(false);
  });
});

describe('an address without a digest', () => {
  it('is asked again, and taken from the cache while nothing changed', async () => {
    const { ensure } = setUp();
    const server = await fileServer(wellServed(body('same'), { etag: '"v1"' }));
    const first = await ensure(url(server.url));
    expect(await ensure(url(server.url))).toEqual(first);
    expect(server.requests.map((r) => r.headers['if-none-match'])).toEqual([undefined, '"v1"']);
  });

  it('that changed is fetched again, and what guests were made from stays', async () => {
    const { ensure } = setUp();
    const server = await fileServer(wellServed(body('old'), { etag: '"v1"' }));
    const old = await ensure(url(server.url));
    server.handler = wellServed(body('new'), { etag: '"v2"' });
    const fresh = await ensure(url(server.url));
    expect(contentOf(fresh)).toBe(sha256(body('new')).hex);
    expect(contentOf(old)).toBe(sha256(body('old')).hex);
    server.handler = wellServed(body('new'), { etag: '"v2"' });
    expect((await ensure(url(server.url))).digest).toEqual(fresh.digest);
    expect(server.requests.at(-1)?.headers['if-none-match']).toBe('"v2"');
  });

  it('is asked by date where there is no ETag', async () => {
    const { ensure } = setUp();
    const date = 'Tue, 01 Dec 2026 10:00:00 GMT';
    const server = await fileServer((request, response) => {
      if (request.headers['if-modified-since'] === date) response.writeHead(304).end();
      else response.writeHead(200, { 'last-modified': date, 'content-length': 4 }).end('disk');
    });
    await ensure(url(server.url));
    expect((await ensure(url(server.url))).sizeBytes).toBe(4);
    expect(server.requests).toHaveLength(2);
  });

  it('is served from the cache while its server is away or ill, and that is logged', async () => {
    const { ensure, log } = setUp();
    const server = await fileServer(wellServed(body('kept'), { etag: '"v1"' }));
    const kept = await ensure(url(server.url));
    server.handler = (_request, response) => void response.writeHead(503).end();
    expect(await ensure(url(server.url))).toEqual(kept);
    await server.stop();
    expect(await ensure(url(server.url))).toEqual(kept);
    expect(log.events.filter((e) => e.event === 'images.revalidate.failed')).toHaveLength(2);
  });

  it('that was withdrawn is an error, not the last copy', async () => {
    const { ensure } = setUp();
    const server = await fileServer(wellServed(body('gone'), { etag: '"v1"' }));
    await ensure(url(server.url));
    server.handler = (_request, response) => void response.writeHead(404).end();
    expect(codeOf(await failure(ensure(url(server.url))))).toBe('ImageNotFound');
  });
});

describe('an image with a digest', () => {
  it('is fetched once and never asked for again, also by a new agent', async () => {
    const { ensure, folder, clock, log } = setUp();
    const bytes = body('once');
    const server = await fileServer(wellServed(bytes));
    const ref = url(server.url, { digest: sha256(bytes) });
    await ensure(ref);
    const options = { folder, uid: 0, maxBytes: 0 };
    const next = new ImageCache(new ScriptedRunner(), someFacts(), clock, log, options);
    await next.sweep(calm());
    expect(contentOf(await next.ensure(ref, () => undefined, calm()))).toBe(sha256(bytes).hex);
    expect(server.requests).toHaveLength(1);
  });

  it('that differs is refused with both, and not kept', async () => {
    const { ensure, files } = setUp();
    const server = await fileServer(wellServed(body('actual')));
    const error = await failure(ensure(url(server.url, { digest: sha256(body('declared')) })));
    expect(codeOf(error)).toBe('ImageDigestMismatch');
    expect(isPermanent(error)).toBe(true);
    for (const seed of ['actual', 'declared']) expect(errorLine(error)).toContain(sha256(body(seed)).hex);
    expect(files()).toEqual([]);
  });

  it('may be a sha512', async () => {
    const { ensure } = setUp();
    const bytes = body('512');
    const server = await fileServer(wellServed(bytes));
    const hex = createHash('sha512').update(bytes).digest('hex');
    const image = await ensure(url(server.url, { digest: { algorithm: 'sha512', hex } }));
    expect(image.path).toMatch(/sha512-[0-9a-f]{128}\.raw$/);
  });

  it('that was torn on disk is fetched again', async () => {
    const { ensure } = setUp();
    const bytes = body('torn');
    const server = await fileServer(wellServed(bytes));
    const ref = url(server.url, { digest: sha256(bytes) });
    const { path } = await ensure(ref);
    chmodSync(path, 0o600);
    writeFileSync(path, 'half');
    expect(contentOf(await ensure(ref))).toBe(sha256(bytes).hex);
  });

  it('declared in another format than it has is refused, also from the cache', async () => {
    const { ensure } = setUp();
    const bytes = body('format');
    const server = await fileServer(wellServed(bytes));
    await ensure(url(server.url, { digest: sha256(bytes) }));
    const error = await failure(ensure(url(server.url, { digest: sha256(bytes), format: 'qcow2' })));
    expect(codeOf(error)).toBe('ImageUnsupported');
  });
});

describe('room', () => {
  it('that is not there stops a download before it starts, with numbers and a way out', async () => {
    const { ensure, files } = setUp({ freeBytes: () => Promise.resolve(GIB + 1000) });
    const server = await fileServer(wellServed(body('large')));
    const error = await failure(ensure(url(server.url)));
    expect(errorLine(error)).toMatch(/needs 293.0 KiB more .* 1.0 GiB are free .*1 GiB are kept/);
    expect(isPermanent(error)).toBe(false);
    expect(files()).toEqual([]);
  });

  it('is not taken by zeros', async () => {
    const { ensure } = setUp();
    const bytes = Buffer.concat([body('head', 65_536), Buffer.alloc(32 * 2 ** 20)]);
    const server = await fileServer(wellServed(bytes));
    const image = await ensure(url(server.url));
    expect(image.sizeBytes).toBe(bytes.length);
    expect(contentOf(image)).toBe(sha256(bytes).hex);
    expect(statSync(image.path).blocks * 512).toBeLessThan(4 * 2 ** 20);
  });
});

describe('eviction', () => {
  const minutes = (n: number) => n * 60_000;

  async function three(options: Partial<ImageCacheOptions>) {
    const world = setUp(options);
    const server = await fileServer((request, response) => wellServed(body(request.url ?? ''))(request, response));
    const images: PreparedImage[] = [];
    for (const name of ['a', 'b', 'c']) {
      images.push(await world.ensure(url(`${server.url}/${name}`)));
      await world.clock.advance(minutes(1));
    }
    const left = () => world.files().filter((f) => f.endsWith('.raw'));
    const nameOf = (image: PreparedImage | undefined) => `sha256-${image?.digest.hex ?? ''}.raw`;
    return { ...world, server, images, left, nameOf };
  }

  it('takes the least recently used beyond the budget, and no more', async () => {
    const { cache, clock, ensure, server, images, left, nameOf } = await three({ maxBytes: 700_000 });
    await clock.advance(minutes(20));
    await ensure(url(`${server.url}/a`));
    await clock.advance(minutes(20));
    await cache.evict([], calm());
    expect(left()).toEqual([nameOf(images[0]), nameOf(images[2])].sort());
  });

  it('never takes what somebody names, nor what is in flight, with a budget of one byte', async () => {
    const { cache, clock, ensure, server, images, left, nameOf } = await three({ maxBytes: 1 });
    await clock.advance(minutes(20));
    const bytes = body('flying');
    const gate = new Gate();
    server.handler = async (_request, response) => {
      response.writeHead(200, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, 1000));
      await gate.opened;
      response.end(bytes.subarray(1000));
    };
    const flying = ensure(url(`${server.url}/flying`));
    await until(() => server.requests.length === 4);
    await cache.evict(
      [images[0], images[1]].flatMap((image) => image?.digest ?? []),
      calm(),
    );
    expect(left()).toEqual([nameOf(images[0]), nameOf(images[1])].sort());
    gate.open();
    expect(contentOf(await flying)).toBe(sha256(bytes).hex);
    await cache.evict([], calm());
    expect(left()).toEqual([nameOf(await flying)]);
  });

  it('never happens with a budget of 0', async () => {
    const { cache, clock, left } = await three({ maxBytes: 0 });
    await clock.advance(minutes(1000));
    await cache.evict([], calm());
    expect(left()).toHaveLength(3);
  });
});

describe('the sweep', () => {
  it('takes what a dead agent left, and neither images nor what is not ours', async () => {
    const { cache, ensure, folder, files } = setUp();
    const server = await fileServer(wellServed(body('stays')));
    await ensure(url(server.url));
    const stays = files();
    const half = 'f'.repeat(64);
    mkdirSync(join(folder, `sha256-${half}.convert`));
    writeFileSync(join(folder, `sha256-${half}.convert`, 'target'), 'x');
    for (const name of [
      '0f.partial',
      `sha256-${half}.raw`,
      `sha256-${'e'.repeat(64)}.json`,
      '.a.json.0123456789ab.tmp',
    ]) {
      writeFileSync(join(folder, name), 'x');
    }
    writeFileSync(join(folder, 'notes.txt'), 'of the operator');
    await cache.sweep(calm());
    expect(files()).toEqual([...stays, 'notes.txt'].sort());
  });

  it('of a folder that is not there is nothing', async () => {
    const { cache } = setUp();
    await cache.sweep(calm());
  });
});

describe('a file of this host', () => {
  const file = (path: string): ImageRef => url(`file://${path}`);

  it('of the agent is taken, and again only when it changed', async () => {
    const { ensure } = setUp();
    const path = join(tempFolder(), 'disk.raw');
    writeFileSync(path, body('v1'));
    const first = await ensure(file(path));
    expect(contentOf(first)).toBe(sha256(body('v1')).hex);
    const seen: ImageProgress[] = [];
    await ensure(file(path), calm(), (p) => seen.push(p));
    expect(seen).toEqual([]);
    writeFileSync(path, body('v2'));
    utimesSync(path, 1, 1);
    expect(contentOf(await ensure(file(path)))).toBe(sha256(body('v2')).hex);
  });

  it('of somebody else is refused, also behind a link, unless it stands below the image folder', async () => {
    const folder = tempFolder();
    const path = join(folder, 'secret');
    writeFileSync(path, 'secret');
    if (process.getuid?.() === 0) chownSync(path, STRANGER + 1, STRANGER + 1);
    const link = join(folder, 'link');
    symlinkSync(path, link);
    const strict = setUp({ uid: STRANGER });
    for (const at of [path, link]) {
      const error = await failure(strict.ensure(file(at)));
      expect(errorLine(error)).toContain('must belong to root');
      expect(isPermanent(error)).toBe(true);
    }
    const catalog = join(folder, 'catalog');
    mkdirSync(catalog);
    symlinkSync(path, join(catalog, 'evil.raw'));
    const below = setUp({ uid: STRANGER, imageDir: catalog });
    expect(isPermanent(await failure(below.ensure({ kind: 'catalog', name: 'evil' })))).toBe(true);
    const trusting = setUp({ uid: STRANGER, imageDir: folder });
    expect((await trusting.ensure(file(link))).sizeBytes).toBe(6);
  });

  it('that is no regular file, or not there, is refused for good', async () => {
    const { ensure } = setUp();
    for (const path of ['/dev/zero', tempFolder(), '/no/such/file']) {
      const error = await failure(ensure(file(path)));
      expect(codeOf(error)).toBe('ImageNotFound');
      expect(isPermanent(error)).toBe(true);
    }
  });

  it('is refused where manifests come over the wire', async () => {
    const { ensure } = setUp({ fileUrls: false });
    expect(errorLine(await failure(ensure(file('/etc/hostname'))))).toContain('only a local manifest may');
  });
});

describe('a catalog name', () => {
  it('means a file of the image folder', async () => {
    const imageDir = tempFolder();
    writeFileSync(join(imageDir, 'debian-12.img'), body('debian'));
    const { ensure } = setUp({ imageDir });
    expect(contentOf(await ensure({ kind: 'catalog', name: 'debian-12' }))).toBe(sha256(body('debian')).hex);
  });

  it.each([
    ['debian-13', /did you mean debian-12\? .* has alpine, debian-12$/],
    ['../etc/passwd', /letters, digits/],
    ['..', /letters, digits/],
  ])('%s that is not there is an error that names what is', async (name, message) => {
    const imageDir = tempFolder();
    for (const f of ['debian-12.img', 'debian-12.raw', 'alpine.qcow2', 'README']) writeFileSync(join(imageDir, f), 'x');
    const error = await failure(setUp({ imageDir }).ensure({ kind: 'catalog', name }));
    expect(errorLine(error)).toMatch(message);
    expect(codeOf(error)).toBe('ImageNotFound');
  });

  it('without a catalog is an error that names the flag', async () => {
    const error = await failure(setUp().ensure({ kind: 'catalog', name: 'debian-12' }));
    expect(errorLine(error)).toContain('--image-dir');
  });
});

describe('a reference', () => {
  it.each([
    ['no URL', url('debian.raw')],
    ['another scheme', url('ftp://x/y')],
    ['a digest of the wrong length', url('http://x/y', { digest: { algorithm: 'sha512', hex: 'a'.repeat(64) } })],
    ['a digest in capitals', url('http://x/y', { digest: { algorithm: 'sha256', hex: 'A'.repeat(64) } })],
  ])('with %s is refused for good', async (_what, ref) => {
    const error = await failure(setUp().ensure(ref));
    expect(codeOf(error)).toBe('SpecInvalid');
    expect(isPermanent(error)).toBe(true);
  });
});

describe('progress', () => {
  it('tells the first and the last, and little in between', async () => {
    const { ensure } = setUp();
    const bytes = body('progress', 4 * 2 ** 20);
    const server = await fileServer(wellServed(bytes));
    const seen: ImageProgress[] = [];
    await ensure(url(server.url), calm(), (p) => seen.push(p));
    expect(seen).toEqual([
      { step: 'download', doneBytes: 0, totalBytes: bytes.length },
      { step: 'download', doneBytes: bytes.length, totalBytes: bytes.length },
    ]);
  });

  it("that its listener can't bear stops nothing", async () => {
    const { ensure } = setUp();
    const server = await fileServer(wellServed(body('deaf')));
    const image = await ensure(url(server.url), calm(), () => {
      throw new Error('broken display');
    });
    expect(contentOf(image)).toBe(sha256(body('deaf')).hex);
  });
});

/** What a server's answer waits at until the test lets it go on. */
class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

/** Neither length nor chunks: the body ends where the connection does. */
function unframed(bytes: Buffer): Handler {
  return (_request, response) => {
    response.socket?.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'), bytes]));
  };
}
