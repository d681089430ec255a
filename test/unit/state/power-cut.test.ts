/**
 * What the state store promises over a power cut, on a disk that fails before it; and that the simulated disk on which
 * this is tried does lose what was not synced.
 */
import { FakeHost, ManualClock } from '@eitri/conformance';
import { describe, expect, it } from 'vitest';
import { AtomicFiles } from '../../../src/host/atomic-file.js';
import { FileStateStore, StatePaths } from '../../../src/state/index.js';
import { Prng } from '../../support/history/prng.js';
import { silent } from '../../support/quiet.js';
import { recordOf } from '../../support/records.js';
import { SimFiles } from '../../support/sim-files.js';

const never = new AbortController().signal;
const paths = new StatePaths({ stateDir: '/state', runDir: '/run/agent' });
const diskOf = (): SimFiles => new SimFiles(new FakeHost({ clock: new ManualClock() }));
const SEEDS = Array.from({ length: 40 }, (_, seed) => seed);

describe('a record that was written', () => {
  it('survives a power cut, also where the disk failed at any call of the try before', async () => {
    for (const seed of SEEDS) {
      const disk = diskOf();
      const store = new FileStateStore(paths, silent, new AtomicFiles(disk));
      await store.prepare();
      const record = recordOf(1, paths);
      disk.fail('EIO', seed % 20, 1);
      await store.writeRecord(record).catch(() => store.writeRecord(record));
      disk.heal();
      disk.powerCut(new Prng(seed));
      const again = new FileStateStore(paths, silent, new AtomicFiles(disk));
      await again.prepare();
      expect(await again.loadRecords(never), `seed ${String(seed)}`).toEqual([{ kind: 'record', record }]);
    }
  });
});

describe('a file that was written without a sync', () => {
  const textAfter = async (seed: number, syncs: readonly ('file' | 'folder')[]): Promise<string | undefined> => {
    const disk = diskOf();
    await disk.makeFolder('/state', 0o700);
    await disk.syncFolder('/');
    const file = await disk.create('/state/a', 0o600);
    await file.write('whole');
    if (syncs.includes('file')) await file.sync();
    if (syncs.includes('folder')) await disk.syncFolder('/state');
    disk.powerCut(new Prng(seed));
    return disk.bytes('/state/a')?.toString('utf8');
  };

  it('is there or not, and whole or torn, as its folder and its bytes reached the disk', async () => {
    const after = async (syncs: readonly ('file' | 'folder')[]): Promise<ReadonlySet<string | undefined>> =>
      new Set(await Promise.all(SEEDS.map((seed) => textAfter(seed, syncs))));
    expect(await after(['file', 'folder'])).toEqual(new Set(['whole']));
    expect(await after(['file'])).toEqual(new Set(['whole', undefined]));
    expect((await after(['folder'])).has('')).toBe(true);
    expect((await after(['folder'])).has(undefined)).toBe(false);
  });
});
