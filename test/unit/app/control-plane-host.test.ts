import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { sampleUid } from '@eitri/conformance';
import { CONTRACT_VERSION } from '@eitri/core/contracts';
import type { Capabilities, ConsoleAttach, ConsoleSession, VmUid } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { makeConfig } from '../../../src/app/config.js';
import { makeControlPlaneHost } from '../../../src/app/control-plane-host.js';
import { someFacts } from '../../support/quiet.js';

const facts = someFacts();
const capabilities = { backend: 'qemu', vmmVersion: 'QEMU 7.2' } as Capabilities;
const session: ConsoleSession = { stream: new PassThrough(), ended: new Promise(() => undefined) };
const wish: ConsoleAttach = { write: true, force: false, backlog: true, who: 'fleet' };

function hostOver(attach: (uid: VmUid, wish: ConsoleAttach) => ConsoleSession) {
  const config = makeConfig({ flags: { 'max-vcpus': '8', 'max-mem-mb': '2048' }, env: {}, file: {} }, facts);
  const composition = {
    platform: { backend: 'qemu', capabilities, hostNetworks: ['lab', 'office'] },
    engine: { report: () => ({ vms: [] }), onReport: () => () => undefined },
    consoles: { attach },
  } as unknown as Parameters<typeof makeControlPlaneHost>[0]['composition'];
  return makeControlPlaneHost({ ground: { config, facts }, composition, version: '1.2.3' });
}

describe('what a control plane is given', () => {
  it('says hello with versions, backend, capabilities, caps, networks and host, as plain data', () => {
    const hello = hostOver(() => session).hello();
    expect(hello).toEqual({
      version: '1.2.3',
      contract: CONTRACT_VERSION,
      backend: 'qemu',
      capabilities,
      caps: { vcpus: 8, memoryMib: 2048, diskGib: 0 },
      hostNetworks: ['lab', 'office'],
      host: facts,
    });
    expect(JSON.parse(JSON.stringify(hello))).toEqual(hello);
  });

  it('opens a console of the guest that was asked for, in the way that was asked for', async () => {
    const asked: unknown[] = [];
    const host = hostOver((...of) => {
      asked.push(of);
      return session;
    });
    await expect(host.openConsole(sampleUid(7), wish)).resolves.toBe(session);
    expect(asked).toEqual([[sampleUid(7), wish]]);
  });

  it('rejects, and does not throw, where a console is refused', async () => {
    const host = hostOver(() => {
      throw permanent('somebody is typing');
    });
    const opening = host.openConsole(sampleUid(7), wish);
    await expect(opening).rejects.toThrow('somebody is typing');
  });
});
