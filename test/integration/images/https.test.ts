/**
 * Images over https, from a server that an authority of the test's own vouches for. The cache runs in a process of its own:
 * whom Node trusts is settled when it starts.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { bundle } from '../../support/bundle.js';
import { makeCertificates } from '../../support/certificates.js';
import { fileServer, wellServed } from '../../support/file-server.js';
import { tempFolder } from '../../support/temp.js';

const run = promisify(execFile);
const BYTES = Buffer.alloc(3 * 2 ** 20, 'an image behind a certificate ');
const HEX = createHash('sha256').update(BYTES).digest('hex');

async function setUp() {
  const folder = tempFolder();
  const certificates = makeCertificates(folder);
  const server = await fileServer(wellServed(BYTES, { etag: '"1"' }), certificates);
  const program = await bundle('images/fetch-image.ts');
  const images = join(folder, 'images');
  const ask = async (url: string, env: NodeJS.ProcessEnv = {}): Promise<unknown> => {
    const plain = { PATH: process.env['PATH'], ...env };
    const { stdout } = await run(process.execPath, [program, images, url], { env: plain, timeout: 60_000 });
    return JSON.parse(stdout);
  };
  return { images, certificates, server, ask };
}

it('an image behind a certificate that is trusted: is fetched and kept, and not fetched again', async () => {
  const { images, certificates, server, ask } = await setUp();
  const trusting = { NODE_EXTRA_CA_CERTS: certificates.authority };
  const path = join(images, `sha256-${HEX}.raw`);
  for (let times = 0; times < 2; times++) {
    expect(await ask(`${server.url}/a.raw`, trusting)).toEqual({ path, digest: { algorithm: 'sha256', hex: HEX } });
  }
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(HEX);
  expect(readdirSync(images).sort()).toEqual([`sha256-${HEX}.json`, `sha256-${HEX}.raw`]);
  // The second time it only asked whether it changed.
  expect(server.requests.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"1"']);
});

it.each([
  [
    'that nobody trusts',
    '127.0.0.1',
    {},
    /its certificate is not trusted here .*NODE_EXTRA_CA_CERTS, the path of its authority's certificate$/,
  ],
  [
    'for another name',
    'localhost',
    { trusted: true },
    /its certificate is for another name: write the name that it is for$/,
  ],
])(
  'an image behind a certificate %s: is refused in a sentence, and nothing of it is kept',
  async (_, host, how, why) => {
    const { images, certificates, server, ask } = await setUp();
    const url = `${server.url.replace('127.0.0.1', host)}/a.raw`;
    const said = await ask(url, 'trusted' in how ? { NODE_EXTRA_CA_CERTS: certificates.authority } : {});
    // The certificate may be mended, or the host taught to trust it: worth another try.
    expect(said).toEqual({ error: expect.stringMatching(why) as string, permanent: false });
    expect(server.requests).toEqual([]);
    expect(existsSync(images) ? readdirSync(images) : []).toEqual([]);
  },
);
