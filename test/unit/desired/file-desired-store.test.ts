import { mkdirSync, readFileSync, renameSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sampleSpec, sampleUid } from '@eitri/conformance';
import type { DesiredSnapshot, VmId, VmUid } from '@eitri/core/contracts';
import { errorLine, isPermanent } from '@eitri/core/kit';
import { FileDesiredStore } from '../../../src/desired/index.js';
import { diskFiles } from '../../../src/host/atomic-file.js';
import { CountedRandom, MemoryLogger } from '../../support/ports.js';
import { tempFolder } from '../../support/temp.js';

const LINEAGE = sampleUid(900);
const OTHER = sampleUid(901);
const go = new AbortController().signal;

const ids = (...names: string[]): readonly VmId[] => names as VmId[];

function snapshot(names: readonly string[], more: Partial<DesiredSnapshot> = {}): DesiredSnapshot {
  const vms = names.map((name) => ({ spec: sampleSpec(name) }));
  return { lineage: LINEAGE, epoch: 1, vms, tombstones: [], unreadable: [], issues: [], ...more };
}

interface World {
  readonly path: string;
  readonly log: MemoryLogger;
  readonly open: (adopt?: boolean) => Promise<FileDesiredStore>;
}

function world(): World {
  const path = join(tempFolder(), 'desired.json');
  const log = new MemoryLogger();
  const random = new CountedRandom();
  const open = async (adopt = false): Promise<FileDesiredStore> => {
    const store = new FileDesiredStore(random, log, diskFiles, { path, adopt });
    await store.load();
    return store;
  };
  return { path, log, open };
}

/** `web present`, sorted by name: what is wanted, in words. */
const said = (store: FileDesiredStore): readonly string[] =>
  (store.current()?.lives ?? [])
    .map((life) => `${life.id} ${life.kind}${life.kind === 'vanished' && life.held ? ' held' : ''}`)
    .toSorted();

const uidOf = (store: FileDesiredStore, id: string): VmUid | undefined =>
  store.current()?.lives.find((life) => life.id === id)?.uid;

describe('the first word of a control plane', () => {
  it('is accepted, on disk before listeners are told, and there after a restart', async () => {
    const { path, open } = world();
    const store = await open();
    expect(store.current()).toBeUndefined();
    const onDiskWhenTold: string[] = [];
    store.onChange(() => onDiskWhenTold.push(readFileSync(path, 'utf8')));
    expect(await store.accept(snapshot(['b', 'a']), go)).toEqual({ kind: 'accepted', revision: 1, changed: true });
    expect(onDiskWhenTold).toEqual([readFileSync(path, 'utf8')]);
    expect((await open()).current()).toEqual(store.current());
    expect(said(store)).toEqual(['a present', 'b present']);
  });

  it('that says nothing new is no revision, and writes no other bytes', async () => {
    const { path, open } = world();
    const store = await open();
    await store.accept(snapshot(['a', 'b']), go);
    const bytes = readFileSync(path, 'utf8');
    let told = 0;
    store.onChange(() => told++);
    expect(await store.accept(snapshot(['b', 'a']), go)).toEqual({ kind: 'accepted', revision: 1, changed: false });
    expect([told, readFileSync(path, 'utf8')]).toEqual([0, bytes]);
  });
});

describe('the fence', () => {
  it('refuses another lineage and says what to type; nothing changes', async () => {
    const { open, log } = world();
    const store = await open();
    await store.accept(snapshot(['a']), go);
    const before = store.current();
    const outcome = await store.accept(snapshot([], { lineage: OTHER }), go);
    expect(outcome).toMatchObject({ kind: 'refused', why: expect.stringContaining('--adopt') as string });
    expect(store.current()).toBe(before);
    expect(store.issues().map((issue) => issue.message)).toEqual([outcome.kind === 'refused' ? outcome.why : '']);
    expect(log.events('warn')).toEqual(['desired.refused']);
  });

  it('lets another lineage take over once when the operator says so, and the lives stay the same', async () => {
    const { open } = world();
    const first = await open();
    await first.accept(snapshot(['a']), go);
    const store = await open(true);
    expect((await store.accept(snapshot(['a'], { lineage: OTHER }), go)).kind).toBe('accepted');
    expect(uidOf(store, 'a')).toBe(uidOf(first, 'a'));
    expect((await store.accept(snapshot(['a']), go)).kind).toBe('refused');
  });

  it('refuses a lower epoch, takes a higher one, and never counts a revision down within one', async () => {
    const { open } = world();
    const store = await open();
    await store.accept(snapshot(['a'], { epoch: 5 }), go);
    expect((await store.accept(snapshot([], { epoch: 4 }), go)).kind).toBe('refused');
    expect((await store.accept(snapshot(['a'], { epoch: 6, revision: 7 }), go)).kind).toBe('accepted');
    expect((await store.accept(snapshot([], { epoch: 6, revision: 6 }), go)).kind).toBe('refused');
    expect(await store.accept(snapshot(['a'], { epoch: 6, revision: 9 }), go)).toMatchObject({
      revision: 9,
      changed: false,
    });
    expect((await (await open()).accept(snapshot([], { epoch: 6, revision: 8 }), go)).kind).toBe('refused');
  });

  it('refuses a word that names a VM twice', async () => {
    const store = await world().open();
    expect(await store.accept(snapshot(['a', 'a']), go)).toEqual({ kind: 'refused', why: 'a is declared twice' });
    expect(store.current()).toBeUndefined();
  });
});

describe('a life', () => {
  it('deleted and declared again before it is settled is the same', async () => {
    const store = await world().open();
    await store.accept(snapshot(['a', 'b']), go);
    const uid = uidOf(store, 'a');
    await store.accept(snapshot(['b'], { tombstones: [{ id: 'a' as VmId }] }), go);
    expect(said(store)).toEqual(['a tombstoned', 'b present']);
    await store.accept(snapshot(['b']), go);
    expect(said(store), 'a tombstone that goes takes nothing back').toEqual(['a tombstoned', 'b present']);
    await store.accept(snapshot(['a', 'b']), go);
    expect(said(store)).toEqual(['a present', 'b present']);
    expect(uidOf(store, 'a')).toBe(uid);
  });

  it('settled and declared again is another', async () => {
    const { open } = world();
    const store = await open();
    await store.accept(snapshot(['a', 'b']), go);
    const uid = uidOf(store, 'a');
    await store.accept(snapshot(['b'], { tombstones: [{ id: 'a' as VmId }] }), go);
    await store.settled(uid ?? sampleUid(0));
    expect(said(await open())).toEqual(['b present']);
    await store.accept(snapshot(['a', 'b']), go);
    expect(uidOf(store, 'a')).not.toBe(uid);
  });

  it('declared again while it is being destroyed lives on as another as soon as it is settled', async () => {
    const store = await world().open();
    await store.accept(snapshot(['a']), go);
    const uid = uidOf(store, 'a') ?? sampleUid(0);
    let told = 0;
    store.onChange(() => told++);
    await store.settled(uid);
    expect([said(store), told]).toEqual([['a present'], 1]);
    expect(uidOf(store, 'a')).not.toBe(uid);
    await store.settled(uid);
    expect(told).toBe(1);
  });

  it('of a server keeps the uid that the server gave, and that uid never lives twice', async () => {
    const { open } = world();
    const store = await open();
    const uid = sampleUid(77);
    const word = snapshot([], { revision: 1, vms: [{ uid, spec: sampleSpec('a') }] });
    await store.accept(word, go);
    expect(uidOf(store, 'a')).toBe(uid);
    await store.settled(uid);
    const again = await open();
    await again.accept(word, go);
    expect(said(again)).toEqual([]);
    expect(again.issues()).toMatchObject([{ id: 'a', message: `uid ${uid} was destroyed here: give a another uid` }]);
  });

  it('of a server never changes its name: it stays as it was, and the server is told', async () => {
    const store = await world().open();
    const uid = sampleUid(77);
    await store.accept(snapshot([], { vms: [{ uid, spec: sampleSpec('a') }] }), go);
    await store.accept(snapshot([], { vms: [{ uid, spec: sampleSpec('b') }] }), go);
    expect(said(store)).toEqual(['a present']);
    expect(store.issues()).toHaveLength(1);
  });

  it('with another uid for its name ends, and the other one begins', async () => {
    const store = await world().open();
    await store.accept(snapshot([], { vms: [{ uid: sampleUid(71), spec: sampleSpec('a') }] }), go);
    const tombstones = [{ id: 'a' as VmId, uid: sampleUid(71) }];
    await store.accept(snapshot([], { vms: [{ uid: sampleUid(72), spec: sampleSpec('a') }], tombstones }), go);
    expect(store.current()?.lives.map(({ uid, kind }) => [uid, kind])).toEqual([
      [sampleUid(71), 'tombstoned'],
      [sampleUid(72), 'present'],
    ]);
  });
});

describe('absence', () => {
  const eight = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

  it('of one VM is a vanishing, also where it is the only one', async () => {
    const store = await world().open();
    await store.accept(snapshot(['a']), go);
    await store.accept(snapshot([]), go);
    expect(said(store)).toEqual(['a vanished']);
    await store.accept(snapshot(['a']), go);
    expect(said(store)).toEqual(['a present']);
  });

  it('of a quarter is a vanishing, of more than a quarter it is held, loudly', async () => {
    const { open, log } = world();
    const store = await open();
    await store.accept(snapshot(eight), go);
    await store.accept(snapshot(eight.slice(2)), go);
    expect(said(store).slice(0, 3)).toEqual(['a vanished', 'b vanished', 'c present']);
    expect(log.events('error')).toEqual([]);
    // Two of six: more than a quarter of those that are still there.
    await store.accept(snapshot(eight.slice(4)), go);
    expect(said(store).slice(0, 5)).toEqual([
      'a vanished',
      'b vanished',
      'c vanished held',
      'd vanished held',
      'e present',
    ]);
    expect(log.events('error')).toEqual(['desired.mass-vanish.held']);
    expect(store.issues()).toMatchObject([{ message: expect.stringContaining('c, d went missing at once') as string }]);
  });

  it('that is held stays held over a restart, until it is back, deleted, or let go', async () => {
    const { open } = world();
    await (await open()).accept(snapshot(['a', 'b', 'c', 'd']), go);
    await (await open()).accept(snapshot([]), go);
    const store = await open();
    expect(said(store)).toEqual(['a vanished held', 'b vanished held', 'c vanished held', 'd vanished held']);
    await store.accept(snapshot(['a'], { tombstones: [{ id: 'b' as VmId }] }), go);
    expect(said(store)).toEqual(['a present', 'b tombstoned', 'c vanished held', 'd vanished held']);
    expect(await store.releaseHold(go)).toEqual(['c', 'd']);
    expect(said(await open())).toEqual(['a present', 'b tombstoned', 'c vanished', 'd vanished']);
    expect(store.issues()).toEqual([]);
    expect(await store.releaseHold(go)).toEqual([]);
  });

  it('is not what can’t be read: it stays as it was accepted', async () => {
    const store = await world().open();
    await store.accept(snapshot(['a', 'b']), go);
    await store.accept(snapshot(['b'], { unreadable: ids('a', 'never-seen') }), go);
    expect(said(store)).toEqual(['a present', 'b present']);
  });
});

describe('contact', () => {
  it('is told when it is lost and when a word makes it whole again, each time once', async () => {
    const { open } = world();
    const store = await open();
    const told: boolean[] = [];
    store.onChange(() => told.push(store.inContact()));
    store.setContact(true);
    await store.accept(snapshot(['a']), go);
    store.setContact(false);
    store.setContact(false);
    store.setContact(true);
    await store.accept(snapshot(['a']), go);
    await store.accept(snapshot(['a'], { lineage: 'another' }), go);
    expect(told).toEqual([true, false, true, false]);
  });

  it('counts only after a whole word was accepted since it began', async () => {
    const store = await world().open();
    store.setContact(true);
    expect(store.inContact()).toBe(false);
    await store.accept(snapshot(['a']), go);
    expect(store.inContact()).toBe(true);
    store.setContact(false, { source: 'folder', message: 'is not there' });
    expect([store.inContact(), store.issues()]).toEqual([false, [{ source: 'folder', message: 'is not there' }]]);
    store.setContact(true);
    expect([store.inContact(), store.issues()]).toEqual([false, []]);
    await store.accept(snapshot(['a']), go);
    expect(store.inContact()).toBe(true);
    await store.accept(snapshot(['a'], { lineage: OTHER }), go);
    expect(store.inContact()).toBe(false);
  });

  it('does not count while a vanished VM may be what can’t be read', async () => {
    const store = await world().open();
    store.setContact(true);
    await store.accept(snapshot(['a', 'b']), go);
    await store.accept(snapshot(['a']), go);
    expect(store.inContact()).toBe(true);
    await store.accept(snapshot(['a'], { unreadable: ids('b') }), go);
    expect(store.inContact()).toBe(false);
    await store.accept(snapshot(['a']), go);
    expect(store.inContact()).toBe(true);
  });
});

describe('a word that can’t be written', () => {
  it('leaves what was wanted before, is told as no contact, and is accepted when it can', async () => {
    const { path, open } = world();
    const store = await open();
    store.setContact(true);
    await store.accept(snapshot(['a']), go);
    const bytes = readFileSync(path);
    let told = 0;
    store.onChange(() => told++);
    // A folder in the file's place: the rename fails, as a full disk's write does.
    renameSync(path, `${path}.saved`);
    mkdirSync(path);
    await expect(store.accept(snapshot(['a', 'b']), go)).rejects.toThrow(/write .*desired\.json/);
    expect([said(store), told, store.inContact()]).toEqual([['a present'], 1, false]);
    expect(store.issues()).toMatchObject([
      { source: path, message: expect.stringContaining('still counts') as string },
    ]);
    await expect(store.settled(uidOf(store, 'a') ?? sampleUid(0))).rejects.toThrow();
    expect(said(store)).toEqual(['a present']);

    rmdirSync(path);
    writeFileSync(path, bytes);
    expect((await store.accept(snapshot(['a', 'b']), go)).kind).toBe('accepted');
    expect([said(await open()), store.issues(), told]).toEqual([['a present', 'b present'], [], 2]);
  });

  it('does not keep a listener that fails from the others', async () => {
    const { open, log } = world();
    const store = await open();
    let told = 0;
    store.onChange(() => {
      throw new Error('boom');
    });
    const leave = store.onChange(() => told++);
    await store.accept(snapshot(['a']), go);
    leave();
    await store.accept(snapshot(['a', 'b']), go);
    expect([told, log.events('error').length]).toEqual([1, 2]);
  });
});

describe('the absence of a life', () => {
  const absenceOf = (store: FileDesiredStore, id: string): string | undefined => {
    const life = store.current()?.lives.find((one) => one.id === id);
    return life === undefined || life.kind === 'present' ? undefined : life.absence;
  };

  it('keeps its name while it lasts, also over a restart, and has another each time it is missed anew', async () => {
    const { open } = world();
    const store = await open();
    const names: (string | undefined)[] = [];
    const hear = async (declared: readonly string[], deleted: readonly string[] = []): Promise<void> => {
      const tombstones = ids(...deleted).map((id) => ({ id }));
      await store.accept(snapshot([...declared, 'x', 'y', 'z', 'w'], { tombstones }), go);
      names.push(absenceOf(store, 'a'));
    };
    await hear(['a']);
    await hear([]);
    const vanished = names.at(-1);
    await hear(['b']);
    expect(names.at(-1)).toBe(vanished);
    expect(absenceOf(await open(), 'a')).toBe(vanished);
    await hear([], ['a']);
    const deleted = names.at(-1);
    await hear(['a']);
    expect(names.at(-1)).toBeUndefined();
    await hear([], ['a']);
    expect(new Set([vanished, deleted, names.at(-1), undefined]).size).toBe(4);
  });

  it('has another name once it is let go from a hold: its grace is before it', async () => {
    const { open } = world();
    const store = await open();
    await store.accept(snapshot(['a', 'b', 'c']), go);
    await store.accept(snapshot(['c']), go);
    const held = absenceOf(store, 'a');
    await store.releaseHold(go);
    expect(said(store)).toEqual(['a vanished', 'b vanished', 'c present']);
    expect([held, undefined]).not.toContain(absenceOf(store, 'a'));
  });
});

describe('a desired.json that can’t be read', () => {
  it.each([
    ['nothing', ''],
    ['half of it', '{"version":1,"lives":['],
    ['an empty object', '{}'],
    ['NULs', '\0\0\0'],
    ['a life without its spec', '{"version":1,"lineage":"x","epoch":1,"revision":1,"settled":[],"lives":[{}]}'],
    ['a newer agent’s version', '{"version":99}'],
  ])('stops the start and is left as it is: %s', async (_what, text) => {
    const { path, open } = world();
    writeFileSync(path, text);
    const error: unknown = await open().catch((e: unknown) => e);
    expect(errorLine(error)).toMatch(
      /^the desired state in .*desired\.json can’t be read, so no VM is touched: put back/,
    );
    expect(isPermanent(error)).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('says which version wrote it', async () => {
    const { path, open } = world();
    writeFileSync(path, '{"version":99}');
    await expect(open()).rejects.toMatchObject({
      cause: { message: 'desired state has version 99, written by a newer agent; this one reads up to 2' },
    });
  });

  it.each([1, 2])('of version %i is read as it was meant', async (version) => {
    const { path, open } = world();
    writeFileSync(path, readFileSync(new URL(`../../golden/state/desired-v${version}.json`, import.meta.url)));
    const store = await open();
    expect(said(store)).toEqual(['api present', 'db tombstoned', 'web vanished']);
    const absences = (store.current()?.lives ?? []).map((life) => (life.kind === 'present' ? '' : life.absence));
    expect(absences.filter((absence) => absence !== '').length).toBe(2);
    // It is whole: the next word goes on from it.
    const tombstones = [{ id: 'web' as VmId }];
    await store.accept({ ...snapshot(['api', 'db'], { tombstones }), lineage: store.current()?.lineage ?? '' }, go);
    expect(said(store)).toEqual(['api present', 'db present', 'web tombstoned']);
  });

  it('keeps fields that this version does not know', async () => {
    const { path, open } = world();
    await (await open()).accept(snapshot(['a']), go);
    const json = JSON.parse(readFileSync(path, 'utf8')) as { lives: object[] };
    rmSync(path);
    const [life] = json.lives;
    writeFileSync(path, JSON.stringify({ ...json, later: 1, lives: [{ ...life, later: 2 }] }));
    await (await open()).accept(snapshot(['a', 'b']), go);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ later: 1, lives: [{ later: 2 }, { id: 'b' }] });
  });
});

describe('a desired state that is lost', () => {
  it('is taken up from the records: declared names are the same lives, the others are held', async () => {
    const { open } = world();
    const store = await open();
    store.inherit(['a', 'b', 'c'].map((id, n) => ({ uid: sampleUid(n + 101), id: id as VmId, spec: sampleSpec(id) })));
    const tombstones = [{ id: 'c' as VmId }];
    await store.accept(snapshot(['a', 'new'], { tombstones }), go);
    expect(said(store)).toEqual(['a present', 'b vanished held', 'c tombstoned', 'new present']);
    expect(uidOf(store, 'a')).toBe(sampleUid(101));
    expect((await open()).current()).toEqual(store.current());
  });

  it('is not taken up over one that is there', async () => {
    const { open } = world();
    const store = await open();
    await store.accept(snapshot(['a']), go);
    store.inherit([{ uid: sampleUid(7), id: 'a' as VmId, spec: sampleSpec('a') }]);
    await store.accept(snapshot(['a', 'b']), go);
    expect(uidOf(store, 'a')).not.toBe(sampleUid(7));
  });
});
