import { join } from 'node:path';
import { ManualClock } from '@eitri/conformance';
import { errorLine, GIB, isPermanent } from '@eitri/core/kit';
import { describe, expect, it, onTestFinished } from 'vitest';
import { guardedAgent, hostAddressJudge, type AddressJudge } from '../../../src/images/address-guard.js';
import { ImageCache } from '../../../src/images/image-cache.js';
import { fileServer, wellServed } from '../../support/file-server.js';
import { calm, KeepingLogger, ScriptedRunner, someFacts } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

describe('an address that an image is fetched from', () => {
  const judge = hostAddressJudge(['10.1.2.3', '2001:db8::5']);

  it.each([
    '127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::', '169.254.169.254', 'fe80::1', 'fd00:ec2::254', '100.100.100.200',
    '::ffff:169.254.169.254', '::ffff:127.0.0.1', '10.1.2.3', '2001:db8::5',
  ])('%s is refused', (address) => { expect(judge(address)).toBeDefined(); }); // prettier-ignore

  it.each(['10.1.2.4', '192.168.0.1', '1.1.1.1', '2001:db8::6', '::ffff:10.1.2.4'])('%s is taken', (address) => {
    expect(judge(address)).toBeUndefined();
  });
});

describe('a guarded download', () => {
  function fetchWith(judge: AddressJudge, url: string) {
    const agent = guardedAgent(judge);
    onTestFinished(async () => {
      await agent.destroy();
    });
    const cache = new ImageCache(new ScriptedRunner(), someFacts(), new ManualClock(), new KeepingLogger(), {
      folder: join(tempFolder(), 'images'),
      uid: 0,
      maxBytes: 0,
      dispatcher: agent,
      freeBytes: () => Promise.resolve(100 * GIB),
    });
    return cache.ensure({ kind: 'url', url }, () => undefined, calm());
  }
  const failure = async (promise: Promise<unknown>): Promise<unknown> =>
    await promise.then(
      () => new Error('it did not fail'),
      (error: unknown) => error,
    );

  it.each(['127.0.0.1', 'localhost'])('never connects to %s, and that is for good', async (host) => {
    const server = await fileServer(wellServed(Buffer.from('disk')));
    const error = await failure(fetchWith(hostAddressJudge(), server.url.replace('127.0.0.1', host)));
    expect(errorLine(error)).toContain('an address of this host');
    expect(isPermanent(error)).toBe(true);
    expect(server.requests).toEqual([]);
  });

  it('does not follow a redirect to where it may not go', async () => {
    const server = await fileServer((request, response) => {
      const location = `http://localhost:${request.socket.localPort ?? 0}/secret`;
      response.writeHead(302, { location }).end();
    });
    // The server's own address is taken here, and the name that it leads to is not.
    let seen = 0;
    const judge: AddressJudge = () => (seen++ === 0 ? undefined : 'refused by the test');
    expect(isPermanent(await failure(fetchWith(judge, server.url)))).toBe(true);
    expect(server.requests.map((r) => r.path)).toEqual(['/']);
  });

  it('goes where it may', async () => {
    const server = await fileServer(wellServed(Buffer.from('disk')));
    const image = await fetchWith(() => undefined, server.url.replace('127.0.0.1', 'localhost'));
    expect(image.sizeBytes).toBe(4);
  });
});
