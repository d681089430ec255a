import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRecordedBackends } from '../../../src/state/index.js';
import { tempFolder } from '../../support/temp.js';

function vmsFolder(records: Readonly<Record<string, string | undefined>>): { readonly vms: string } {
  const vms = join(tempFolder(), 'vms');
  for (const [uid, record] of Object.entries(records)) {
    mkdirSync(join(vms, uid), { recursive: true });
    if (record !== undefined) writeFileSync(join(vms, uid, 'record.json'), record);
  }
  return { vms };
}

describe('the backends that records name', () => {
  it('are none where no VM ever was', async () => {
    expect(await readRecordedBackends({ vms: '/nowhere/at/all' }, { names: true })).toEqual({ lives: 0, names: [] });
  });

  it('are each told once, and a record that can not be read is a VM all the same', async () => {
    const paths = vmsFolder({
      a: '{"backend":"qemu"}',
      b: '{"backend":"qemu"}',
      c: '{"backend":"cloudhv"}',
      d: '{"backend":',
      e: 'null',
      f: undefined,
    });
    expect(await readRecordedBackends(paths, { names: true })).toEqual({ lives: 6, names: ['cloudhv', 'qemu'] });
    expect(await readRecordedBackends(paths, { names: false })).toEqual({ lives: 6, names: [] });
  });

  it('are not none where they can not be read', async () => {
    const vms = join(tempFolder(), 'vms');
    writeFileSync(vms, '');
    await expect(readRecordedBackends({ vms }, { names: true })).rejects.toThrow(vms);
  });
});
