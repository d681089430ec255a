import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { VmRecord, VmUid } from '@eitri/core/contracts';
import { errorLine, isPermanent } from '@eitri/core/kit';
import { diskFiles } from '../../../src/host/atomic-file.js';
import { StatePaths } from '../../../src/state/state-paths.js';
import { FileStateStore } from '../../../src/state/state-store.js';
import { silent } from '../../support/quiet.js';
import { recordOf, uidOf } from '../../support/records.js';
import { tempFolder } from '../../support/temp.js';

const never = new AbortController().signal;
interface Scene {
  readonly paths: StatePaths;
  readonly store: FileStateStore;
  /** A new agent on the same state. */
  readonly again: () => FileStateStore;
}

async function scene(): Promise<Scene> {
  const folder = tempFolder();
  const paths = new StatePaths({ stateDir: join(folder, 'state'), runDir: join(folder, 'run') });
  const again = () => new FileStateStore(paths, silent, diskFiles);
  const store = again();
  await store.prepare();
  return { paths, store, again };
}

const modeOf = (path: string): number => statSync(path).mode & 0o7777;
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('writing a record', () => {
  it('makes the life’s folders with their modes, and the next agent reads it as it was', async () => {
    const { paths, store, again } = await scene();
    const record = recordOf(1, paths);
    await store.writeRecord(record);
    expect(await again().loadRecords(never)).toEqual([{ kind: 'record', record }]);
    const { folder, guestFolder, keysFolder } = store.pathsOf(uidOf(1));
    expect([folder, guestFolder, keysFolder, paths.record(uidOf(1)), paths.stateDir, paths.vms].map(modeOf)).toEqual([
      0o711, 0o700, 0o700, 0o600, 0o711, 0o711,
    ]);
  });

  it('keeps fields of a newer agent, read before or not', async () => {
    const { paths, store, again } = await scene();
    const record = recordOf(1, paths);
    await store.writeRecord({ ...record, later: 1 } as VmRecord);
    const reader = again();
    await reader.loadRecords(never);
    await reader.writeRecord({ ...record, boots: 8 });
    await again().writeRecord({ ...record, boots: 9 });
    expect(JSON.parse(readFileSync(paths.record(uidOf(1)), 'utf8'))).toEqual({ ...record, later: 1, boots: 9 });
  });

  it('over one that can not be read is refused, and leaves it', async () => {
    const { paths, store, again } = await scene();
    await store.writeRecord(recordOf(1, paths));
    writeFileSync(paths.record(uidOf(1)), '{"half":');
    const error = await failureOf(again().writeRecord(recordOf(1, paths)));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain('is kept');
    expect(readFileSync(paths.record(uidOf(1)), 'utf8')).toBe('{"half":');
  });

  it('many times at once ends with the last one, whole', async () => {
    const { paths, store, again } = await scene();
    const record = recordOf(1, paths);
    await Promise.all(Array.from({ length: 20 }, (_, boots) => store.writeRecord({ ...record, boots })));
    expect(await again().loadRecords(never)).toEqual([{ kind: 'record', record: { ...record, boots: 19 } }]);
  });

  it('whose folder somebody removed meanwhile makes it again at the next try', async () => {
    const { paths, store } = await scene();
    await store.writeRecord(recordOf(1, paths));
    rmSync(store.pathsOf(uidOf(1)).folder, { recursive: true });
    await failureOf(store.writeRecord(recordOf(1, paths)));
    await store.writeRecord(recordOf(1, paths));
    expect(existsSync(paths.record(uidOf(1)))).toBe(true);
  });
});

describe('loading', () => {
  const bad: [string, (path: string) => void, RegExp][] = [
    ['emptied', (path) => writeFileSync(path, ''), /empty/],
    ['an empty object', (path) => writeFileSync(path, '{}'), /version/],
    ['half a JSON', (path) => writeFileSync(path, readFileSync(path).subarray(0, 300)), /no JSON/],
    ['NULs', (path) => writeFileSync(path, Buffer.alloc(2000)), /no JSON/],
    [
      'another life’s',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('0000000003', '0000000009')),
      /copied/,
    ],
    [
      'a folder',
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
      /EISDIR/,
    ],
    [
      'a link in a circle',
      (path) => {
        rmSync(path);
        symlinkSync(path, path);
      },
      /ELOOP/,
    ],
  ];

  it.each(bad)(
    'four records of which one is %s gives three, and one unreadable with its reason, sorted',
    async (_what, spoil, why) => {
      const { paths, store, again } = await scene();
      for (const n of [4, 2, 3, 1]) await store.writeRecord(recordOf(n, paths));
      spoil(paths.record(uidOf(3)));
      const loaded = await again().loadRecords(never);
      expect(loaded.map((one) => (one.kind === 'record' ? one.record.uid : one.uid))).toEqual([1, 2, 3, 4].map(uidOf));
      expect(loaded[2]).toMatchObject({
        kind: 'unreadable',
        path: paths.record(uidOf(3)),
        why: expect.stringMatching(why) as string,
      });
      expect(loaded.filter((one) => one.kind === 'record')).toHaveLength(3);
    },
  );

  it('a folder without a record, left by an interrupted create or destroy, removes it', async () => {
    const { store, again } = await scene();
    const { folder, guestFolder, runFolder, seed } = store.pathsOf(uidOf(1));
    mkdirSync(guestFolder, { recursive: true });
    mkdirSync(runFolder);
    writeFileSync(seed, '');
    writeFileSync(join(folder, '.record.json.0123456789ab.tmp'), '');
    expect(await again().loadRecords(never)).toEqual([]);
    expect([existsSync(folder), existsSync(runFolder)]).toEqual([false, false]);
  });

  it.each(['rootDisk', 'pidFile'] as const)(
    'a folder without a record but with a %s keeps all and tells',
    async (name) => {
      const { store, again } = await scene();
      const path = store.pathsOf(uidOf(1))[name];
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, 'precious');
      expect(await again().loadRecords(never)).toMatchObject([{ kind: 'unreadable', uid: uidOf(1) }]);
      expect(readFileSync(path, 'utf8')).toBe('precious');
    },
  );

  it('passes by what is not ours, and tells of a life in a folder of another name', async () => {
    const { paths, store, again } = await scene();
    await store.writeRecord(recordOf(1, paths));
    mkdirSync(join(paths.vms, 'lost+found'));
    writeFileSync(join(paths.vms, 'note'), '');
    writeFileSync(join(paths.vms, uidOf(7)), '');
    mkdirSync(join(paths.vms, 'web-1.old'));
    writeFileSync(join(paths.vms, 'web-1.old', 'record.json'), '{}');
    const loaded = await again().loadRecords(never);
    expect(loaded.map((one) => (one.kind === 'record' ? one.record.uid : one.uid))).toEqual([
      uidOf(1),
      uidOf(7),
      'web-1.old',
    ]);
  });

  it('a folder of records that is gone is an error, never no VMs; before the first use it is made', async () => {
    const { paths, again } = await scene();
    rmSync(paths.vms, { recursive: true });
    await expect(again().loadRecords(never)).rejects.toThrow(paths.vms);
    writeFileSync(paths.control, '{}');
    const error = await failureOf(again().prepare());
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain(paths.vms);
    rmSync(paths.control);
    await again().prepare();
    expect(await again().loadRecords(never)).toEqual([]);
  });

  it('stops when its signal is aborted', async () => {
    const { paths, store } = await scene();
    await store.writeRecord(recordOf(1, paths));
    await expect(store.loadRecords(AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
  });
});

describe('the uids of what has a record', () => {
  it('are all of them, readable or not, and asking removes nothing, not even a folder whose record is about to come', async () => {
    const { paths, store } = await scene();
    await store.writeRecord(recordOf(1, paths));
    await store.writeRecord(recordOf(2, paths));
    writeFileSync(paths.record(uidOf(2)), '');
    mkdirSync(store.pathsOf(uidOf(3)).folder);
    mkdirSync(join(paths.vms, 'lost+found'));
    writeFileSync(join(paths.vms, 'note'), '');
    expect(await store.recordedUids(never)).toEqual(new Set([uidOf(1), uidOf(2), uidOf(3)]));
    expect(existsSync(store.pathsOf(uidOf(3)).folder)).toBe(true);
  });

  it('can not be told where a life stands in a folder of another name, or the folder of the records is gone', async () => {
    const { paths, store } = await scene();
    await store.writeRecord(recordOf(1, paths));
    renameSync(store.pathsOf(uidOf(1)).folder, join(paths.vms, 'kept'));
    expect(errorLine(await failureOf(store.recordedUids(never)))).toContain('kept');
    rmSync(paths.vms, { recursive: true });
    expect(await failureOf(store.recordedUids(never))).toBeInstanceOf(Error);
  });
});

describe('preparing', () => {
  it('clears away what writes left that an agent died in, wherever it keeps files, and nothing else', async () => {
    const { paths, store, again } = await scene();
    await store.writeRecord(recordOf(1, paths));
    const { folder, keysFolder } = store.pathsOf(uidOf(1));
    const left = [paths.stateDir, paths.volumes, folder, keysFolder].map((at) =>
      join(at, '.some.json.0123456789ab.tmp'),
    );
    const kept = [join(paths.volumes, 'data.raw'), join(folder, 'serial.log'), paths.record(uidOf(1))];
    for (const file of [...left, ...kept.slice(0, 2)]) writeFileSync(file, 'half');
    await again().prepare();
    expect([...left, ...kept].filter((file) => existsSync(file))).toEqual(kept);
  });
});

describe('removing a life', () => {
  it('leaves nothing of it, not even its sockets, and nothing else is touched; ten times over', async () => {
    const { paths, store, again } = await scene();
    for (const n of [1, 2]) await store.writeRecord(recordOf(n, paths));
    const { rootDisk, runFolder, folder } = store.pathsOf(uidOf(1));
    writeFileSync(rootDisk, 'x');
    mkdirSync(runFolder);
    writeFileSync(join(runFolder, 'serial.sock'), '');
    const target = tempFolder();
    writeFileSync(join(target, 'theirs'), '');
    symlinkSync(target, join(folder, 'guest', 'link'));
    for (let i = 0; i < 10; i++) await store.removeVm(uidOf(1), never);
    expect(readdirSync(paths.vms)).toEqual([uidOf(2)]);
    expect(readdirSync(paths.runDir)).toEqual([]);
    expect(readdirSync(target)).toEqual(['theirs']);
    expect(await again().loadRecords(never)).toHaveLength(1);
  });

  it('interrupted before any step still has its record, and goes on from there', async () => {
    const { paths, store, again } = await scene();
    await store.writeRecord(recordOf(1, paths));
    const { folder, rootDisk, serialLog } = store.pathsOf(uidOf(1));
    writeFileSync(rootDisk, 'x');
    writeFileSync(serialLog, 'x');
    for (let steps = 0; existsSync(folder); steps++) {
      expect(await again().loadRecords(never)).toMatchObject([{ kind: 'record' }]);
      expect(steps).toBeLessThan(20);
      await failureOf(again().removeVm(uidOf(1), stopAfter(1)));
    }
    expect(await again().loadRecords(never)).toEqual([]);
  });

  it('with an unreadable record removes it too', async () => {
    const { paths, store } = await scene();
    await store.writeRecord(recordOf(1, paths));
    writeFileSync(paths.record(uidOf(1)), '');
    await store.removeVm(uidOf(1), never);
    expect(readdirSync(paths.vms)).toEqual([]);
  });

  it('and writing it anew starts afresh: no field of the old life comes back', async () => {
    const { paths, store } = await scene();
    await store.writeRecord({ ...recordOf(1, paths), later: 1 } as VmRecord);
    await store.loadRecords(never);
    await store.removeVm(uidOf(1), never);
    await store.writeRecord(recordOf(1, paths));
    expect(readFileSync(paths.record(uidOf(1)), 'utf8')).not.toContain('later');
  });
});

it('an id that leaves the folder removes and writes nothing', async () => {
  const { paths, store } = await scene();
  const evil = '..' as VmUid;
  expect(await failureOf(store.removeVm(evil, never))).toBeDefined();
  expect(await failureOf(store.writeRecord({ ...recordOf(1, paths), uid: evil }))).toBeDefined();
  expect(existsSync(paths.stateDir)).toBe(true);
});

it('folders that an operator made keep their modes', async () => {
  const folder = tempFolder();
  const stateDir = join(folder, 'state');
  mkdirSync(stateDir);
  chmodSync(stateDir, 0o750);
  await new FileStateStore(new StatePaths({ stateDir, runDir: join(folder, 'run') }), silent, diskFiles).prepare();
  expect(modeOf(stateDir)).toBe(0o750);
});

/** A signal that is found aborted at its (n + 1)-th look. */
function stopAfter(n: number): AbortSignal {
  const { signal } = new AbortController();
  let looks = 0;
  // The lock looks once, before the work.
  signal.throwIfAborted = () => {
    looks++;
    if (looks > n + 1) throw new Error('interrupted');
  };
  return signal;
}
