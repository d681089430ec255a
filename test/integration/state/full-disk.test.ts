/** On real file systems of their own: one that is full, one that is read-only. Needs root, to mount. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { errorLine, EXIT, exitCodeOf, isPermanent } from '@eitri/core/kit';
import { diskFiles, isTempName } from '../../../src/host/atomic-file.js';
import { ControlFile } from '../../../src/state/control-file.js';
import { SystemRandom } from '../../../src/host/index.js';
import { HostKeyStore } from '../../../src/state/host-keys.js';
import { FolderLock } from '../../../src/state/folder-lock.js';
import { StatePaths } from '../../../src/state/state-paths.js';
import { FileStateStore } from '../../../src/state/state-store.js';
import { silent } from '../../support/quiet.js';
import { CountedRandom } from '../../support/ports.js';
import { recordOf, uidOf } from '../../support/records.js';
import { tempFolder } from '../../support/temp.js';

const never = new AbortController().signal;
beforeAll(() => {
  if (process.getuid?.() !== 0) throw new Error('mounting a small file system needs root: run this file as root');
});

function smallDisk(sizeKib: number): string {
  const mount = join(tempFolder(), 'disk');
  mkdirSync(mount);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeKib}k`, 'eitri-test', mount]);
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', mount]);
  });
  return mount;
}

/** Takes what room there is. Gives it back when called. */
function fill(disk: string): () => void {
  const path = join(disk, 'filler');
  for (const size of [65536, 4096]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch {
      // Full to within this size.
    }
  }
  return () => rmSync(path);
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' });
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

function expectFull(error: unknown): void {
  expect(errorLine(error)).toMatch(/is full: free some space/);
  expect(isPermanent(error)).toBe(false);
  expect(exitCodeOf(error)).toBe(EXIT.cantWriteState);
}

describe('a full disk', () => {
  it('at each write leaves what was there, no litter, and goes on when there is room again', async () => {
    const disk = smallDisk(256);
    const paths = new StatePaths({ stateDir: join(disk, 'state'), runDir: join(disk, 'run') });
    const store = new FileStateStore(paths, silent, diskFiles);
    const control = new ControlFile(paths.control, new CountedRandom());
    const keys = new HostKeyStore(new SystemRandom());
    await store.prepare();
    const record = recordOf(1, paths);
    await store.writeRecord(record);
    await control.update((state) => ({ ...state, backend: 'one' }));
    const before = { record: readFileSync(paths.record(uidOf(1))), control: readFileSync(paths.control) };

    const free = fill(disk);
    expectFull(await failureOf(store.writeRecord({ ...record, boots: 99 })));
    expectFull(await failureOf(store.writeRecord(recordOf(2, paths))));
    expectFull(await failureOf(control.update((state) => ({ ...state, backend: 'two' }))));
    expectFull(await failureOf(keys.ensure(store.pathsOf(uidOf(1)).keysFolder)));
    expect(readFileSync(paths.record(uidOf(1)))).toEqual(before.record);
    expect(readFileSync(paths.control)).toEqual(before.control);
    expect(filesOf(disk).filter((name) => isTempName(name.split('/').at(-1) ?? ''))).toEqual([]);
    expect(await new FileStateStore(paths, silent, diskFiles).loadRecords(never)).toEqual([{ kind: 'record', record }]);

    free();
    await store.writeRecord({ ...record, boots: 99 });
    await store.writeRecord(recordOf(2, paths));
    expect((await control.update((state) => ({ ...state, backend: 'two' }))).backend).toBe('two');
    await keys.ensure(store.pathsOf(uidOf(1)).keysFolder);
  });

  it('does not keep an agent from its guests: the lock is taken, and holds', async () => {
    const disk = smallDisk(256);
    const paths = new StatePaths({ stateDir: join(disk, 'state'), runDir: join(disk, 'run') });
    await new FileStateStore(paths, silent, diskFiles).prepare();
    fill(disk);
    const lock = FolderLock.acquire(paths.lock, { kind: 'state', path: paths.stateDir }, 4711);
    expect(() => FolderLock.acquire(paths.lock, { kind: 'state', path: paths.stateDir }, 4712)).toThrow(
      'another agent',
    );
    lock.release();
  });

  it('does not keep a life from being removed', async () => {
    const disk = smallDisk(256);
    const paths = new StatePaths({ stateDir: join(disk, 'state'), runDir: join(disk, 'run') });
    const store = new FileStateStore(paths, silent, diskFiles);
    await store.prepare();
    await store.writeRecord(recordOf(1, paths));
    fill(disk);
    await store.removeVm(uidOf(1), never);
    expect(readdirSync(paths.vms)).toEqual([]);
  });
});

it('a read-only disk is told with its path and the remedy, at start and at each write, and is still read', async () => {
  const disk = smallDisk(256);
  const paths = new StatePaths({ stateDir: join(disk, 'state'), runDir: join(disk, 'run') });
  const store = new FileStateStore(paths, silent, diskFiles);
  await store.prepare();
  const record = recordOf(1, paths);
  await store.writeRecord(record);
  execFileSync('mount', ['-o', 'remount,ro', disk]);
  const failures = [
    await failureOf(store.writeRecord({ ...record, boots: 99 })),
    await failureOf(
      Promise.resolve().then(() => FolderLock.acquire(paths.lock, { kind: 'state', path: paths.stateDir }, 1)),
    ),
    await failureOf(
      new FileStateStore(
        new StatePaths({ stateDir: join(disk, 'other'), runDir: paths.runDir }),
        silent,
        diskFiles,
      ).prepare(),
    ),
  ];
  for (const error of failures) {
    expect(errorLine(error)).toMatch(/\/disk\/.*read-only: remount it writable/);
    expect(exitCodeOf(error)).toBe(EXIT.cantWriteState);
  }
  expect(await new FileStateStore(paths, silent, diskFiles).loadRecords(never)).toEqual([{ kind: 'record', record }]);
});
