import {
  FakeHost,
  FakeSupervisor,
  ManualClock,
  MemoryDesiredStore,
  MemoryDisks,
  MemoryStateStore,
  sampleSpec,
  sampleUid,
  type FakeProcess,
} from '@eitri/conformance';
import type { DesiredSnapshot, StartRequest, VmRecord } from '@eitri/core/contracts';
import { GIB, isPermanent } from '@eitri/core/kit';
import { newRecord } from '@eitri/core/reconcile';
import { describe, expect, it } from 'vitest';

const signal = new AbortController().signal;
const snapshot = (changes: Partial<DesiredSnapshot>): DesiredSnapshot => ({
  lineage: 'one',
  epoch: 1,
  vms: [],
  tombstones: [],
  unreadable: [],
  issues: [],
  ...changes,
});

describe('a desired store in memory', () => {
  it('a VM is missing, one is deleted, one is unreadable: vanished, tombstoned, and as it was', async () => {
    const store = new MemoryDesiredStore();
    const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ spec: sampleSpec(id) }));
    if (a === undefined || b === undefined || c === undefined) throw new Error('three specs');
    await store.accept(snapshot({ vms: [a, b, c] }), signal);
    const word = snapshot({ tombstones: [{ id: b.spec.id }], unreadable: [c.spec.id] });
    expect(await store.accept(word, signal)).toEqual({ kind: 'accepted', revision: 2, changed: true });
    expect(store.current()?.lives.map((l) => [l.id, l.kind])).toEqual([
      ['a', 'vanished'],
      ['b', 'tombstoned'],
      ['c', 'present'],
    ]);
    expect(await store.accept(word, signal)).toEqual({ kind: 'accepted', revision: 2, changed: false });
  });

  it('another lineage, or an older epoch: refused, and nothing changes', async () => {
    const store = new MemoryDesiredStore();
    await store.accept(snapshot({ epoch: 2, vms: [{ spec: sampleSpec('a') }] }), signal);
    const before = store.current();
    expect((await store.accept(snapshot({ epoch: 2, lineage: 'two' }), signal)).kind).toBe('refused');
    expect((await store.accept(snapshot({ epoch: 1 }), signal)).kind).toBe('refused');
    expect(store.current()).toEqual(before);
  });

  it('a name lives again after its life was settled: another uid', async () => {
    const store = new MemoryDesiredStore();
    const first = store.want(sampleSpec('a'));
    store.tombstone(first);
    await store.settled(first);
    expect(store.want(sampleSpec('a'))).not.toBe(first);
  });
});

describe('a state store in memory', () => {
  const host = new FakeHost({ clock: new ManualClock() });
  const record = (store: MemoryStateStore, n: number): VmRecord => {
    const spec = sampleSpec(`vm-${n.toString()}`);
    const uid = sampleUid(n);
    return newRecord({ uid, id: spec.id, spec, backend: 'fake', paths: store.pathsOf(uid), now: 0 });
  };

  it('a record is damaged: it alone is unreadable, the others are read, sorted by uid', async () => {
    const store = new MemoryStateStore({ host });
    for (const n of [3, 1, 2]) await store.writeRecord(record(store, n));
    store.damage(sampleUid(2));
    const loaded = await store.loadRecords(signal);
    expect(loaded.map((l) => l.kind)).toEqual(['record', 'unreadable', 'record']);
  });

  it('the folder can not be read: it rejects, and does not read as empty', async () => {
    const store = new MemoryStateStore({ host });
    store.unreadableFolder = 'input/output error';
    await expect(store.loadRecords(signal)).rejects.toThrow(/input\/output error/);
  });

  it('a caller changes what it wrote: the written record stays', async () => {
    const store = new MemoryStateStore({ host });
    const mine = { ...record(store, 1), hostKeys: ['a'] };
    await store.writeRecord(mine);
    mine.hostKeys.push('b');
    expect(store.record(sampleUid(1))?.hostKeys).toEqual(['a']);
  });
});

describe('disks in memory', () => {
  it('a volume is wanted by a second VM: refused, permanent, until the first lets go', async () => {
    const disks = new MemoryDisks({ host: new FakeHost({ clock: new ManualClock() }) });
    const ask = (n: number) => disks.ensureVolume({ uid: sampleUid(n), name: 'data', sizeGib: 1 }, signal);
    const { path } = await ask(1);
    expect(isPermanent(await ask(2).catch((e: unknown) => e))).toBe(true);
    await disks.releaseVolumes(sampleUid(1), signal);
    expect(await ask(2)).toEqual({ path });
    expect(await disks.sizeOf(path)).toBe(GIB);
  });
});

describe('a fake supervisor', () => {
  const request: StartRequest = {
    pidFile: '/vm.pid',
    identity: { executable: '/bin/vmm', option: '-pidfile', value: '/vm.pid' },
    args: ['-pidfile', '/vm.pid'],
    logFile: '/vmm.log',
  };

  it('a signal is ignored, then refused, then taken: alive, alive, gone', async () => {
    const supervisor = new FakeSupervisor();
    await supervisor.start(request, signal);
    supervisor.effectOf = () => 'ignored';
    await supervisor.signal(request, 'SIGTERM');
    supervisor.effectOf = () => 'refused';
    await expect(supervisor.signal(request, 'SIGKILL')).rejects.toThrow(/not permitted/);
    expect((await supervisor.observe(request, signal)).state).toBe('alive');
    supervisor.effectOf = () => 'ends';
    expect(await supervisor.signal(request, 'SIGKILL')).toBe('sent');
    expect(await supervisor.observe(request, signal)).toEqual({ state: 'exited', signal: 'SIGKILL' });
    expect(await supervisor.signal(request, 'SIGKILL')).toBe('gone');
  });

  it('the agent restarts: the process is found, a second start is refused, and its exit code is not known', async () => {
    const host = new Map<string, FakeProcess>();
    await new FakeSupervisor({ host }).start(request, signal);
    const next = new FakeSupervisor({ host });
    expect((await next.observe(request, signal)).state).toBe('alive');
    await expect(next.start(request, signal)).rejects.toThrow(/alive already/);
    next.end(request.pidFile, { code: 1 });
    expect(await next.observe(request, signal)).toEqual({ state: 'exited' });
    expect(await new FakeSupervisor({ host }).observe(request, signal)).toEqual({ state: 'absent' });
  });
});
