/** Clones by the real `cp`, on whatever file system the temporary folder is. */
import { closeSync, openSync, readSync, statSync, truncateSync, writeSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VmUid } from '@eitri/core/contracts';
import { GIB, MIB } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { HostDiskService } from '../../../src/disks/host-disk-service.js';
import { SystemRandom } from '../../../src/host/clock.js';
import { ExecaRunner } from '../../../src/host/runner.js';
import { calm, someFacts } from '../../support/quiet.js';
import { tempFolder } from '../../support/temp.js';

function setUp() {
  const folder = tempFolder();
  const disks = new HostDiskService(new ExecaRunner(), someFacts(), new SystemRandom(), {
    volumesFolder: join(folder, 'volumes'),
  });
  const base = join(folder, 'base.raw');
  const path = join(folder, 'disk.raw');
  const request = { uid: '00000000-0000-4000-8000-000000000001' as VmUid, basePath: base, path };
  return { disks, base, path, request };
}

const allocated = (path: string): number => statSync(path).blocks * 512;

describe('a root disk', () => {
  it('of a sparse image of 1 GiB takes no more room than its data', async () => {
    const { disks, base, path, request } = setUp();
    writeFileSync(base, 'begin');
    truncateSync(base, GIB);
    const file = openSync(base, 'r+');
    writeSync(file, 'middle', GIB / 2);
    closeSync(file);
    await disks.cloneRootDisk({ ...request, sizeGib: 20 }, calm());
    expect(statSync(path).size).toBe(20 * GIB);
    expect(allocated(path)).toBeLessThan(2 * MIB);
    const copy = openSync(path, 'r');
    const text = (at: number) => {
      const bytes = Buffer.alloc(8);
      readSync(copy, bytes, 0, bytes.length, at);
      return bytes.toString();
    };
    expect([text(0), text(GIB / 2), text(GIB - 8)]).toEqual(['begin\0\0\0', 'middle\0\0', '\0'.repeat(8)]);
    closeSync(copy);
  });
});
