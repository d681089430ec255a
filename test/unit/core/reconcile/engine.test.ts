import { describe, expect, it } from 'vitest';
import type { PublishState, VmSpec, VmUid } from '@eitri/core/contracts';
import { GIB, permanent } from '@eitri/core/kit';
import { MemoryPublisher } from '../../../support/memory-publisher.js';
import { World } from '../../../support/world.js';

const HOUR = 3_600_000;

describe('a declared VM', () => {
  it('is made in order, booted once, and reported running', async () => {
    const world = new World();
    const uid = world.want('web-1', { diskGib: 2 });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const steps = world.calls
      .members(uid)
      .filter((m) => ['provisioner.prepareRootDisk', 'seedSource.build', 'provisioner.boot'].includes(m));
    expect(steps).toEqual(['provisioner.prepareRootDisk', 'seedSource.build', 'provisioner.boot']);
    expect(world.host.starts(uid)).toBe(1);
    expect(world.status('web-1')).toMatchObject({ phase: 'Running', wanted: 'running', boots: 1, diskGib: 2 });
    expect(world.record(uid)).toMatchObject({ bootId: 'boot-1', bootAttempted: true, attempts: 0 });
    expect(world.record(uid)).not.toHaveProperty('intent');
    expect(world.host.violations).toEqual([]);
  });

  it('announces its boot on disk before the VMM is started', async () => {
    const world = new World();
    const uid = world.want('web-1');
    let seen: unknown;
    world.calls.on('provisioner.boot', () => {
      seen = { intent: world.record(uid).intent?.step, attempted: world.record(uid).bootAttempted };
    });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    expect(seen).toEqual({ intent: 'boot', attempted: true });
  });

  it('declared stopped is not made, and is made when it is wanted running', async () => {
    const world = new World();
    const uid = world.want('web-1', { power: 'stopped' });
    await world.boot();
    await world.clock.advance(60_000);
    expect(world.calls.count('imageSource.ensure')).toBe(0);
    expect(world.status('web-1')?.phase).toBe('Stopped');
    world.want('web-1', { power: 'running' });
    await world.untilPhase('web-1', 'Running');
    expect(world.host.starts(uid)).toBe(1);
  });

  it('whose VMM answers slowly is not started a second time', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).startingMs = Number.POSITIVE_INFINITY;
    await world.boot();
    await world.untilPhase('web-1', 'Starting');
    await world.clock.advance(HOUR);
    expect(world.host.starts(uid)).toBe(1);
  });

  it('that asks for hardware the backend lacks fails with the field, and is made once it asks no more', async () => {
    const world = new World();
    world.want('web-1', { hardware: { tpm: true } });
    await world.boot();
    await world.untilPhase('web-1', 'Failed');
    expect(world.status('web-1')).toMatchObject({ reason: 'SpecInvalid' });
    expect(world.status('web-1')?.message).toContain('spec.hardware.tpm');
    world.want('web-1', {});
    await world.untilPhase('web-1', 'Running');
  });
});

describe('a failed attempt', () => {
  it('is tried three times with growing waits, then given up, until the declaration changes', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).bootFails = 1_000;
    await world.boot();
    const times: number[] = [];
    world.calls.on('provisioner.boot', () => {
      times.push(world.clock.monotonicMs());
    });
    await world.untilPhase('web-1', 'Failed');
    await world.clock.advance(HOUR);
    expect(times).toHaveLength(3);
    const [first = 0, second = 0, third = 0] = times;
    expect(second - first).toBeGreaterThanOrEqual(5_000);
    expect(third - second).toBeGreaterThanOrEqual(30_000);
    expect(world.status('web-1')).toMatchObject({ reason: 'AttemptsExhausted' });
    world.host.faultsOf(uid).bootFails = 0;
    world.want('web-1', { cpus: 2 });
    await world.untilPhase('web-1', 'Running');
  });

  it('that is given up is no longer told of once the declaration changes, from that moment on', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).refusesBoot = 'no firmware';
    await world.boot();
    await world.untilPhase('web-1', 'Failed');
    world.host.faultsOf(uid).refusesBoot = undefined;
    world.want('web-1', { cpus: 2 });
    expect(world.status('web-1')).toMatchObject({ phase: 'Pending', wanted: 'running' });
    await world.untilPhase('web-1', 'Running');
  });

  it('of a permanent kind fails at once, and the others go on', async () => {
    const world = new World();
    world.want('bad', { image: { kind: 'catalog', name: 'nowhere' } });
    world.images.missing.add('nowhere');
    world.want('good-1');
    world.want('good-2');
    await world.boot();
    await world.until(() => world.status('good-1')?.phase === 'Running' && world.status('good-2')?.phase === 'Running');
    expect(world.status('bad')).toMatchObject({ phase: 'Failed', reason: 'ImageNotFound' });
    await world.clock.advance(HOUR);
    expect(world.calls.count('imageSource.ensure')).toBe(2 * 2 + 1);
    world.want('bad', {});
    await world.untilPhase('bad', 'Running');
  });

  it('to write the record (a full disk) is tried again, and nothing is started meanwhile', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.calls.fail('stateStore.writeRecord', new Error('no space left on device'), 5);
    await world.boot();
    await world.clock.advance(1_000);
    expect(world.host.starts(uid)).toBe(0);
    expect(world.status('web-1')?.message).toContain('no space left on device');
    await world.untilPhase('web-1', 'Running');
    expect(world.host.violations).toEqual([]);
  });

  it.each(['stopped and started', 'met by the next agent'])(
    'for good is tried again once it was mended and is %s',
    async (how) => {
      const world = new World();
      world.want('web-1', { image: { kind: 'catalog', name: 'nowhere' } });
      world.images.missing.add('nowhere');
      await world.boot();
      await world.untilPhase('web-1', 'Failed');
      world.images.missing.clear();
      if (how === 'met by the next agent') await world.restart();
      else {
        world.want('web-1', { image: { kind: 'catalog', name: 'nowhere' }, power: 'stopped' });
        await world.untilPhase('web-1', 'Stopped');
        world.want('web-1', { image: { kind: 'catalog', name: 'nowhere' } });
      }
      await world.untilPhase('web-1', 'Running');
    },
  );

  it('for want of room is tried for as long as that lasts', async () => {
    const world = new World();
    world.want('web-1');
    world.calls.fail('diskService.cloneRootDisk', Object.assign(new Error('write'), { code: 'ENOSPC' }), 1_000);
    await world.boot();
    await world.clock.advance(HOUR / 4);
    expect(world.status('web-1')).toMatchObject({ phase: 'Pending', reason: 'WaitingRetry' });
    world.calls.heal('diskService.cloneRootDisk');
    await world.untilPhase('web-1', 'Running', 60_000);
  });

  it('that took long has its wait before it all the same', async () => {
    const world = new World();
    world.want('web-1');
    const times: number[] = [];
    world.calls.on('imageSource.ensure', async () => {
      times.push(world.clock.monotonicMs());
      await world.clock.sleep(60_000, new AbortController().signal);
      throw new Error('the mirror went away');
    });
    await world.boot();
    await world.until(() => times.length === 2, 120_000);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(65_000);
  });

  it('after which the declaration vanishes is not counted against a new one', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).refusesBoot = 'firmware missing';
    await world.boot();
    await world.untilPhase('web-1', 'Failed');
    world.desired.tombstone(uid);
    await world.until(() => world.status('web-1') === undefined);
    const second = world.want('web-1');
    expect(second).not.toBe(uid);
    await world.untilPhase('web-1', 'Running');
  });
});

describe('a guest that ends by itself', () => {
  it('is started again from the same disk, after a wait that grows to five minutes', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const inode = world.host.files.get(world.record(uid).paths.rootDisk)?.inode;
    world.host.faultsOf(uid).diesAfterMs = 200;
    world.host.faultsOf(uid).exitCode = 1;
    world.host.faultsOf(uid).cause = 'triple fault';
    world.host.crash(uid, { code: 1, cause: 'triple fault' });
    const before = world.host.starts(uid);
    await world.clock.advance(30_000);
    expect(world.host.starts(uid) - before).toBeLessThanOrEqual(2);
    await world.clock.advance(HOUR);
    expect(world.host.starts(uid) - before).toBeLessThanOrEqual(18);
    expect(world.host.starts(uid) - before).toBeGreaterThanOrEqual(12);
    expect(world.status('web-1')?.message).toContain('triple fault');
    expect(world.host.files.get(world.record(uid).paths.rootDisk)?.inode).toBe(inode);
    expect(world.host.violations).toEqual([]);
  });

  it('has its earlier crashes forgotten after ten minutes up', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.crash(uid);
    await world.until(() => world.host.starts(uid) === 2);
    expect(world.record(uid).crashes).toBe(1);
    await world.clock.advance(11 * 60_000);
    expect(world.record(uid).crashes).toBe(0);
  });

  it.each([
    ['never', 1, 'Stopped'],
    ['never', 0, 'Stopped'],
    ['on-failure', 0, 'Stopped'],
    ['on-failure', 1, 'Running'],
    ['always', 0, 'Running'],
  ] as const)('with restart %s and code %i ends up %s', async (restart, code, phase) => {
    const world = new World();
    const uid = world.want('web-1', { restart });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.crash(uid, code);
    await world.until(() => world.status('web-1')?.phase !== 'Running');
    await world.clock.advance(120_000);
    expect(world.status('web-1')?.phase).toBe(phase);
    expect(world.host.starts(uid)).toBe(phase === 'Running' ? 2 : 1);
  });

  it('while its agent was away counts as failed, as nobody learned its code', async () => {
    const world = new World();
    const uid = world.want('web-1', { restart: 'on-failure' });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.host.crash(uid, 0);
    await world.boot();
    await world.until(() => world.host.starts(uid) === 2);
    expect(world.record(uid).lastExit?.code).toBeUndefined();
  });

  it('when it is wanted stopped is left stopped', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.want('web-1', { power: 'stopped' });
    world.host.crash(uid, 1);
    await world.clock.advance(HOUR);
    expect(world.host.starts(uid)).toBe(1);
    expect(world.status('web-1')?.phase).toBe('Stopped');
  });
});

describe('a shutdown', () => {
  it('presses the button, and takes the console with the guest', async () => {
    const world = new World();
    const uid = world.want('web-1');
    const agent = await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).powerOffMs = 5_000;
    world.want('web-1', { power: 'stopped' });
    await world.untilPhase('web-1', 'Stopping');
    expect(agent.pumps.told.some((call) => call.member === 'stop')).toBe(false);
    await world.untilPhase('web-1', 'Stopped');
    expect(agent.pumps.told.some((call) => call.member === 'stop')).toBe(true);
    expect(world.record(uid)).toMatchObject({ lastExit: { cause: 'stop', code: 0 } });
    expect(world.record(uid)).not.toHaveProperty('bootId');
  });

  it('presses at 0 and 30 s, terminates at 90 s, kills at 100 s', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).ignoresButton = true;
    world.host.faultsOf(uid).ignoresTerminate = true;
    const start = world.clock.monotonicMs();
    const times: number[] = [];
    world.calls.on('provisioner.shutdown', () => {
      if (world.host.vmm(uid) !== undefined) times.push(Math.round((world.clock.monotonicMs() - start) / 1_000));
    });
    world.want('web-1', { power: 'stopped' });
    await world.untilPhase('web-1', 'Stopped', 200_000);
    expect(times).toEqual([0, 30, 90, 100]);
  });

  it('goes on where it was when the agent dies in the middle', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).ignoresButton = true;
    world.want('web-1', { power: 'stopped' });
    await world.clock.advance(31_000);
    await world.restart();
    await world.clock.advance(HOUR / 2);
    expect(world.host.vmm(uid)).toBeUndefined();
    expect(world.status('web-1')?.phase).toBe('Stopped');
  });

  it('whose button can not be pressed tries again, and still terminates only at its deadline', async () => {
    const world = new World();
    const uid = world.want('web-1', { shutdown: { graceSeconds: 60 } });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).buttonFails = true;
    world.want('web-1', { power: 'stopped', shutdown: { graceSeconds: 60 } });
    await world.clock.advance(50_000);
    expect(world.host.vmm(uid)).toBeDefined();
    expect(world.calls.count('provisioner.shutdown')).toBeGreaterThan(3);
    await world.untilPhase('web-1', 'Stopped', 30_000);
  });

  it('taken back while the guest goes down starts it again, and counts no crash', async () => {
    const world = new World();
    const uid = world.want('web-1', { restart: 'never' });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).powerOffMs = 10_000;
    world.want('web-1', { power: 'stopped', restart: 'never' });
    await world.untilPhase('web-1', 'Stopping');
    world.want('web-1', { restart: 'never' });
    await world.until(() => world.host.starts(uid) === 2, 60_000);
    await world.untilPhase('web-1', 'Running');
    expect(world.record(uid).crashes).toBe(0);
  });

  it('taken back, that the guest did not go for in its whole grace, is forgotten: what ends it later is its own end', async () => {
    const world = new World();
    const uid = world.want('web-1', { restart: 'never' });
    world.host.faultsOf(uid).ignoresButton = true;
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.want('web-1', { restart: 'never', power: 'stopped' });
    await world.untilPhase('web-1', 'Stopping');
    world.want('web-1', { restart: 'never' });
    await world.until(() => (world.status('web-1')?.message ?? '').includes('asked to power off'));
    await world.clock.advance(95_000);
    expect(world.status('web-1')?.message).toBeUndefined();
    world.host.crash(uid, 0);
    await world.clock.advance(60_000);
    expect(world.status('web-1')).toMatchObject({ phase: 'Stopped' });
    expect(world.host.starts(uid)).toBe(1);
  });

  it('long after one that was taken back has its whole grace again', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).ignoresButton = true;
    world.want('web-1', { power: 'stopped' });
    await world.untilPhase('web-1', 'Stopping');
    world.want('web-1');
    await world.untilPhase('web-1', 'Running');
    await world.clock.advance(HOUR);
    world.want('web-1', { power: 'stopped' });
    await world.clock.advance(80_000);
    expect(world.host.vmm(uid)).toBeDefined();
    await world.untilPhase('web-1', 'Stopped', 30_000);
  });

  it('of a VMM that an agent died in starting is noted like any other', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.killAt((call) => call.member === 'provisioner.boot' && call.phase === 'after');
    await world.boot();
    await world.until(() => world.killed);
    await world.kill();
    world.want('web-1', { power: 'stopped' });
    await world.boot();
    await world.untilPhase('web-1', 'Stopped');
    await world.clock.advance(10_000);
    expect(world.record(uid)).toMatchObject({ boots: 1, lastExit: { cause: 'stop' } });
    expect(world.record(uid)).not.toHaveProperty('stop');
  });

  it('that the kernel refuses keeps record and process, and is said', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).refusesSignals = true;
    world.host.faultsOf(uid).ignoresButton = true;
    world.desired.tombstone(uid);
    await world.clock.advance(HOUR);
    expect(world.host.vmm(uid)).toBeDefined();
    expect(world.state.record(uid)).toBeDefined();
    expect(world.status('web-1')?.message).toContain('operation not permitted');
    world.host.faultsOf(uid).refusesSignals = false;
    await world.until(() => world.status('web-1') === undefined);
    expect(world.host.violations).toEqual([]);
  });
});

describe('a deleted VM', () => {
  it('is shut down, kept for its grace, then gone with all that was its', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const { folder } = world.record(uid).paths;
    world.desired.tombstone(uid);
    await world.untilPhase('web-1', 'Shelved');
    expect(world.status('web-1')?.reason).toBe('ShelvedTombstoned');
    await world.clock.advance(4 * 60_000);
    expect(world.host.list(folder)).not.toEqual([]);
    await world.clock.advance(2 * 60_000);
    expect(world.status('web-1')).toBeUndefined();
    expect(world.host.list(folder)).toEqual([]);
    expect(world.host.network.taps(uid)).toEqual([]);
    expect(world.state.all()).toEqual([]);
  });

  it('in the middle of a pass that took longer than the grace has its whole grace from then on', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.crash(uid, 1);
    world.calls.on('provisioner.boot', () => world.clock.sleep(10 * 60_000, new AbortController().signal), 1);
    await world.clock.advance(9 * 60_000);
    world.desired.tombstone(uid);
    await world.clock.advance(299_000);
    expect(world.state.record(uid)).toBeDefined();
    await world.until(() => world.status('web-1') === undefined, 60_000);
  });

  it('between two looks is kept for not a moment less than its grace', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.clock.advance(4_000);
    world.desired.tombstone(uid);
    await world.clock.advance(299_000);
    expect(world.state.record(uid)).toBeDefined();
  });

  it('that had vanished for long has its whole grace too', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.vanish(uid);
    await world.clock.advance(HOUR / 2);
    world.desired.tombstone(uid);
    await world.clock.advance(4 * 60_000);
    expect(world.status('web-1')?.phase).toBe('Shelved');
  });

  it('whose first record was written although the write failed leaves no record behind', async () => {
    const world = new World();
    const uid = world.want('web-1');
    let lose = true;
    world.onCall = (call) => {
      if (lose && call.member === 'stateStore.writeRecord' && call.phase === 'after') throw new Error('fsync failed');
    };
    await world.boot();
    await world.clock.advance(1_000);
    world.desired.tombstone(uid);
    await world.until(() => world.status('web-1') === undefined);
    lose = false;
    expect(world.state.record(uid)).toBeUndefined();
  });

  it('taken back within its grace runs again from the same disk', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const inode = world.host.files.get(world.record(uid).paths.rootDisk)?.inode;
    world.desired.tombstone(uid);
    await world.untilPhase('web-1', 'Shelved');
    await world.clock.advance(4 * 60_000);
    world.desired.restore(uid);
    await world.untilPhase('web-1', 'Running');
    expect(world.host.files.get(world.record(uid).paths.rootDisk)?.inode).toBe(inode);
    // The next deletion has its whole grace again.
    world.desired.tombstone(uid);
    await world.clock.advance(4 * 60_000);
    expect(world.status('web-1')?.phase).toBe('Shelved');
  });

  it('taken back and deleted again has its whole grace again, though agents died before they wrote that down', async () => {
    const world = new World({ policy: { persistTimersMs: 5_000 } });
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.tombstone(uid);
    await world.untilPhase('web-1', 'Shelved');
    await world.clock.advance(4 * 60_000);
    expect(world.record(uid).shelved?.ms).toBeGreaterThan(200_000);
    // Every write fails from here on: what an agent counts or forgets stays in its memory.
    world.calls.fail('stateStore.writeRecord', new Error('no space left on device'), 1_000);
    world.desired.restore(uid);
    await world.clock.advance(1_000);
    await world.restart();
    world.desired.tombstone(uid);
    await world.clock.advance(1_000);
    expect(world.status('web-1')?.reason).toBe('ShelvedTombstoned');
    await world.restart();
    world.calls.heal('stateStore.writeRecord');
    await world.clock.advance(4 * 60_000);
    expect(world.status('web-1')?.reason).toBe('ShelvedTombstoned');
  });

  it('that had vanished for long and is deleted while its agent dies has its whole grace too', async () => {
    const world = new World({ policy: { persistTimersMs: 5_000 } });
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.vanish(uid);
    await world.clock.advance(HOUR / 2);
    world.killNow();
    world.desired.tombstone(uid);
    await world.restart();
    await world.untilPhase('web-1', 'Shelved');
    await world.clock.advance(4 * 60_000);
    expect(world.status('web-1')?.reason).toBe('ShelvedTombstoned');
  });

  it('is not destroyed by a clock that jumps, an agent that was away, or a control plane out of contact', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.tombstone(uid);
    await world.untilPhase('web-1', 'Shelved');
    world.clock.jump(2 * HOUR);
    await world.clock.advance(10_000);
    await world.kill();
    await world.clock.advance(HOUR);
    await world.boot();
    await world.clock.advance(10_000);
    expect(world.status('web-1')?.phase).toBe('Shelved');
    world.desired.setContact(false);
    await world.clock.advance(HOUR);
    expect(world.status('web-1')?.phase).toBe('Shelved');
    world.desired.setContact(true);
    await world.until(() => world.status('web-1') === undefined, 400_000);
  });

  it('is given its whole grace where the contact was lost and found again while its backend was silent', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.tombstone(uid);
    await world.untilPhase('web-1', 'Shelved');
    world.calls.on('provisioner.observe', () => world.clock.sleep(200_000, new AbortController().signal), 1);
    await world.clock.advance(20_000);
    world.desired.setContact(false);
    await world.clock.advance(150_000);
    world.desired.setContact(true);
    await world.clock.advance(60_000);
    expect(world.record(uid).shelved?.ms).toBeLessThan(100_000);
  });

  it('whose tap will not go keeps its record until it does', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.calls.fail('network.deleteTap', new Error('device or resource busy'), 1_000);
    world.desired.tombstone(uid);
    await world.clock.advance(HOUR);
    expect(world.state.record(uid)?.destroying).toBe(true);
    expect(world.status('web-1')).toMatchObject({ phase: 'Destroying' });
    world.calls.heal('network.deleteTap');
    await world.until(() => world.status('web-1') === undefined);
  });

  it('declared again while it is destroyed is another life, also when the agent dies before the end', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.tombstone(uid);
    world.calls.on('provisioner.destroy', () => world.desired.restore(uid));
    world.killAt((call) => call.member === 'stateStore.removeVm' && call.phase === 'after');
    await world.until(() => world.killed);
    await world.kill();
    world.calls.heal();
    await world.boot();
    await world.clock.advance(60_000);
    expect(world.host.starts(uid)).toBe(1);
    expect(world.state.record(uid)).toBeUndefined();
  });

  it('that was never made is settled at once', async () => {
    const world = new World();
    const uid = world.want('web-1', { power: 'stopped' });
    world.desired.tombstone(uid);
    await world.boot();
    await world.until(() => world.desired.current()?.lives.length === 0);
    await world.until(() => world.status('web-1') === undefined);
  });
});

describe('a VM at rest', () => {
  async function atRest(spec: Partial<VmSpec> = {}): Promise<{ readonly world: World; readonly uid: VmUid }> {
    const world = new World();
    const uid = world.want('web-1', spec);
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.clock.advance(10_000);
    world.calls.clear();
    return { world, uid };
  }

  it('is only asked after at each tick, and gone over in full every five minutes', async () => {
    const { world, uid } = await atRest();
    await world.clock.advance(60_000);
    expect(world.calls.members(uid)).toEqual(Array.from({ length: 12 }, () => 'provisioner.observe'));
    await world.clock.advance(5 * 60_000);
    expect(world.calls.members(uid)).toContain('provisioner.address');
  });

  it('on a named network is gone over at each tick, because its address there may change', async () => {
    const { world, uid } = await atRest({ networks: [{ name: 'lab' }] });
    await world.clock.advance(20_000);
    expect(world.calls.members(uid).filter((member) => member === 'provisioner.networkAddress').length).toBe(4);
  });

  it('that ends is started again within a tick and its wait', async () => {
    const { world, uid } = await atRest();
    world.host.crash(uid, 1);
    await world.clock.advance(5_000);
    expect(world.status('web-1')).toMatchObject({ phase: 'Pending', reason: 'CrashLooping' });
    await world.clock.advance(10_000);
    expect(world.host.starts(uid)).toBe(2);
  });

  it('whose backend does not answer is waited for by one pass with a limit, which is told of as stuck', async () => {
    const { world, uid } = await atRest();
    world.calls.hang('provisioner.observe', 2, uid);
    await world.clock.advance(16 * 60_000);
    expect(world.status('web-1')?.reason).toBe('StuckPass');
    expect(world.calls.members(uid).length).toBeLessThanOrEqual(3);
  });

  it('counts the time that it is up, although nobody looks', async () => {
    const { world, uid } = await atRest();
    await world.clock.advance(123_000);
    expect(world.agent?.engine.record(uid)?.upMs).toBeGreaterThan(123_000);
  });
});

describe('a guest on a full disk', () => {
  it('stands still, is let try again every 15 s, and goes on when there is room: the same VMM, no crash', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const pid = world.host.vmm(uid)?.pid;
    world.host.faultsOf(uid).fullDisk = true;
    await world.untilPhase('web-1', 'Paused');
    world.calls.clear();
    await world.clock.advance(60_000);
    const tries = world.calls.entries.filter((call) => call.member === 'provisioner.resume' && call.phase === 'after');
    expect(tries.length).toBe(4);
    expect(world.status('web-1')).toMatchObject({ phase: 'Paused', message: /by itself/ });
    world.host.faultsOf(uid).fullDisk = false;
    await world.untilPhase('web-1', 'Running', 20_000);
    expect(world.host.vmm(uid)?.pid).toBe(pid);
    expect(world.record(uid)).toMatchObject({ boots: 1, crashes: 0 });
    const told = world.agent?.events.since(0).map(({ type }) => type) ?? [];
    expect(told.filter((type) => type === 'vm.paused' || type === 'vm.resumed')).toEqual(['vm.paused', 'vm.resumed']);
  });
});

describe('a vanished VM', () => {
  it('runs on for its grace, then is shut down and destroyed', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.vanish(uid);
    await world.clock.advance(HOUR - 60_000);
    expect(world.host.vmm(uid)).toBeDefined();
    expect(world.status('web-1')).toMatchObject({ phase: 'Running', reason: 'ShelvedVanished' });
    await world.until(() => world.status('web-1') === undefined);
    expect(world.host.vmms()).toEqual([]);
  });

  it('is kept for ever with a grace of 0, and while it is held', async () => {
    const world = new World({ policy: { vanishGraceMs: 0 } });
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.vanish(uid);
    await world.clock.advance(3 * HOUR);
    expect(world.host.vmm(uid)).toBeDefined();
    const other = new World();
    const held = other.want('web-2');
    await other.boot();
    await other.untilPhase('web-2', 'Running');
    other.desired.vanish(held, true);
    await other.clock.advance(3 * HOUR);
    expect(other.status('web-2')).toMatchObject({ phase: 'Running', reason: 'HeldMassVanish' });
  });
});

describe('an agent that starts', () => {
  it('adopts a running guest: same VMM, no second one', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const pid = world.host.vmm(uid)?.pid;
    await world.restart();
    await world.untilPhase('web-1', 'Running');
    expect(world.status('web-1')?.pid).toBe(pid);
    expect(world.host.starts(uid)).toBe(1);
  });

  it('after a host reboot boots each guest from its disk, and counts no crash', async () => {
    const world = new World();
    const uids = ['a', 'b', 'c'].map((id) => world.want(id));
    await world.boot();
    await world.until(() => uids.every((uid) => world.host.vmm(uid) !== undefined));
    const addresses = uids.map((uid) => world.record(uid).address);
    await world.kill();
    world.host.reboot();
    await world.boot();
    await world.until(() => uids.every((uid) => world.host.vmm(uid) !== undefined), 60_000);
    await world.clock.advance(10_000);
    expect(uids.map((uid) => world.record(uid).address)).toEqual(addresses);
    for (const uid of uids) expect(world.record(uid)).toMatchObject({ crashes: 0, bootId: 'boot-2' });
    expect(world.host.violations).toEqual([]);
  });

  describe('after a host reboot', () => {
    const NAMES = ['a', 'b', 'c', 'd', 'e'];

    /** Five guests, made in this order, on a host that went down; their VMMs need half a minute to answer. */
    async function rebooted(world: World): Promise<readonly VmUid[]> {
      await world.boot();
      const uids: VmUid[] = [];
      // Made in another order than their names' and uids'.
      for (const id of NAMES.toReversed()) {
        uids.push(world.want(id));
        await world.untilPhase(id, 'Running');
        await world.clock.advance(1_000);
      }
      await world.kill();
      world.host.reboot();
      world.host.defaultFaults.startingMs = 30_000;
      for (const uid of uids) world.host.faultsOf(uid).startingMs = 30_000;
      return uids;
    }

    it('starts the oldest first, as many at a time as may be, and tells each of the others its place', async () => {
      const world = new World({ policy: { maxConcurrentBoots: 2 } });
      const uids = await rebooted(world);
      world.desired.setContact(false);
      await world.boot();
      await world.clock.advance(5_000);
      const up = (): readonly VmUid[] => world.host.vmms().map(({ uid }) => uid);
      expect(up()).toEqual(uids.slice(0, 2));
      expect(world.status('a')).toMatchObject({ phase: 'Pending', reason: 'RecoveringAfterReboot' });
      expect(world.status('a')?.message).toMatch(/^recovering 5\/5: /);
      await world.clock.advance(30_000);
      expect(up()).toEqual(uids.slice(0, 4));
      await world.clock.advance(30_000);
      expect(up()).toEqual(uids);
      expect(new Set(uids.map((uid) => world.record(uid).crashes))).toEqual(new Set([0]));
    });

    it('gives no room to one whose start failed and whose room was taken since, when the agent starts again', async () => {
      const world = new World({ policy: { maxMemoryMib: 512 } });
      world.want('a');
      const uid = world.want('b');
      await world.boot();
      await world.until(() => world.host.vmms().length === 2);
      await world.kill();
      world.host.reboot();
      world.host.faultsOf(uid).refusesBoot = 'no firmware';
      world.want('c');
      await world.boot();
      await world.untilPhase('c', 'Running');
      world.host.faultsOf(uid).refusesBoot = undefined;
      world.want('b', { labels: { tried: 'again' } });
      await world.until(() => world.status('b')?.reason === 'Capacity');
      await world.restart();
      await world.clock.advance(30_000);
      expect(world.host.vmms().length).toBe(2);
      expect(world.status('b')).toMatchObject({ phase: 'Pending', reason: 'Capacity' });
    });

    it('is not held up by one that can’t come up, nor by one that never answers', async () => {
      const world = new World({ policy: { maxConcurrentBoots: 1 } });
      const uids = await rebooted(world);
      const [first, second] = uids;
      if (first === undefined || second === undefined) throw new Error('no VMs');
      world.host.faultsOf(first).bootFails = 99;
      world.host.faultsOf(second).startingMs = Number.POSITIVE_INFINITY;
      await world.boot();
      await world.until(() => uids.slice(2).every((uid) => world.host.vmm(uid) !== undefined), 240_000);
      expect(world.status('e')?.reason).toBe('CrashLooping');
      expect(world.status('d')?.phase).toBe('Starting');
    });

    it('goes on in the same order under an agent that is started in the middle', async () => {
      const world = new World({ policy: { maxConcurrentBoots: 2 } });
      const uids = await rebooted(world);
      await world.boot();
      await world.clock.advance(5_000);
      await world.restart();
      await world.clock.advance(5_000);
      expect(world.host.vmms().map(({ uid }) => uid)).toEqual(uids.slice(0, 4));
      expect(world.status('a')?.message).toMatch(/^recovering 3\/3: /);
      await world.until(() => world.host.vmms().length === 5);
      expect(world.host.vmms().map(({ uid }) => uid)).toEqual(uids);
      expect(uids.map((uid) => world.host.starts(uid))).toEqual([2, 2, 2, 2, 2]);
    });

    it('keeps the room of those that wait: no newcomer takes it', async () => {
      const world = new World({ policy: { maxConcurrentBoots: 1, maxVcpus: 5 } });
      const uids = await rebooted(world);
      await world.boot();
      world.want('new');
      await world.clock.advance(10_000);
      expect(world.status('new')?.reason).toBe('Capacity');
      await world.until(() => uids.every((uid) => world.host.vmm(uid) !== undefined), 240_000);
      await world.clock.advance(60_000);
      expect(world.status('new')?.reason).toBe('Capacity');
    });

    it('with less room than before lets the oldest in, as far as it goes', async () => {
      const world = new World({ policy: { maxConcurrentBoots: 1 } });
      const uids = await rebooted(world);
      world.policy = { ...world.policy, maxVcpus: 3 };
      await world.boot();
      await world.until(() => world.host.vmms().length === 3, 240_000);
      await world.clock.advance(120_000);
      expect(world.host.vmms().map(({ uid }) => uid)).toEqual(uids.slice(0, 3));
      expect(world.status('a')?.reason).toBe('Capacity');
    });

    it('leaves out who is wanted stopped meanwhile', async () => {
      const world = new World({ policy: { maxConcurrentBoots: 1 } });
      const uids = await rebooted(world);
      world.want('e', { power: 'stopped' });
      world.want('d', { power: 'stopped' });
      await world.boot();
      await world.clock.advance(5_000);
      expect(world.host.vmms().map(({ uid }) => uid)).toEqual(uids.slice(2, 3));
    });
  });

  it('after a host reboot deletes what was deleted meanwhile', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.host.reboot();
    world.desired.tombstone(uid);
    await world.boot();
    await world.until(() => world.status('web-1') === undefined);
    expect(world.host.starts(uid)).toBe(1);
  });

  it('leaves a VM alone whose record can not be read, and works on the others', async () => {
    const world = new World();
    const uid = world.want('web-1');
    const other = world.want('web-2');
    await world.boot();
    await world.until(() => world.host.vmm(uid) !== undefined && world.host.vmm(other) !== undefined);
    await world.kill();
    const { folder } = world.record(uid).paths;
    world.state.damage(uid);
    world.host.reboot();
    world.desired.tombstone(uid);
    await world.boot();
    await world.untilPhase('web-2', 'Running');
    await world.clock.advance(3 * HOUR);
    expect(world.status('web-1')).toMatchObject({ phase: 'Unknown', reason: 'RecordUnreadable' });
    expect(world.host.list(folder)).not.toEqual([]);
  });

  it('makes no new VM while a record can not be read whose name nobody tells, and works on the others', async () => {
    const world = new World();
    const lost = world.want('web-1');
    const other = world.want('web-2', { power: 'stopped' });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.want('web-2');
    await world.untilPhase('web-2', 'Running');
    await world.kill();
    await world.desired.settled(lost);
    world.state.damage(lost);
    const second = world.want('web-1');
    expect(second).not.toBe(lost);
    world.want('web-2', { power: 'stopped' });
    await world.boot();
    await world.untilPhase('web-2', 'Stopped');
    await world.clock.advance(HOUR);
    expect(world.host.starts(second)).toBe(0);
    expect(world.state.record(second)).toBeUndefined();
    const status = world.agent?.engine.report().vms.find((vm) => vm.uid === second);
    expect(status).toMatchObject({ phase: 'Pending', reason: 'RecordUnreadable' });
    expect(status?.message).toContain(`/state/vms/${lost}/record.json`);
    world.want('web-2');
    await world.until(() => world.host.starts(other) === 2);
  });

  it('makes a VM of another name than the one whose record can not be read', async () => {
    const world = new World();
    const lost = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.state.damage(lost);
    world.want('web-2');
    await world.boot();
    await world.untilPhase('web-2', 'Running');
  });

  it('does not start when the records as a whole can not be read', async () => {
    const world = new World();
    world.state.unreadableFolder = 'permission denied';
    await expect(world.boot()).rejects.toThrow('permission denied');
  });

  it('keeps a VM that nobody names', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.desired.settled(uid);
    await world.clock.advance(3 * HOUR);
    expect(world.host.vmm(uid)).toBeDefined();
    expect(world.status('web-1')).toMatchObject({ phase: 'Running', wanted: 'unknown' });
  });

  it('never acts on a VM of another backend', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.state.put({ ...world.record(uid), backend: 'other' });
    world.desired.tombstone(uid);
    await world.boot();
    await world.clock.advance(HOUR);
    expect(world.status('web-1')).toMatchObject({ phase: 'Unknown', reason: 'BackendMissing' });
    expect(world.host.vmm(uid)).toBeDefined();
  });
});

describe('what can not be seen', () => {
  it('is neither booted nor destroyed', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.faultsOf(uid).unknown = 'pid 4711 may not be signalled';
    world.desired.tombstone(uid);
    await world.clock.advance(HOUR);
    expect(world.status('web-1')).toMatchObject({ phase: 'Unknown', reason: 'Unknown' });
    expect(world.status('web-1')?.message).toContain('4711');
    expect(world.host.vmm(uid)).toBeDefined();
    expect(world.state.record(uid)).toBeDefined();
  });
});

describe('caps', () => {
  it('count the VMM of a boot that an agent died in before it could write it down', async () => {
    const world = new World({ policy: { maxMemoryMib: 3_000 } });
    const first = world.want('b', { memoryMib: 2_048 });
    world.killAt((call) => call.member === 'provisioner.boot' && call.phase === 'after');
    await world.boot();
    await world.until(() => world.killed);
    await world.kill();
    world.want('a', { memoryMib: 2_048 });
    // Its own worker learns late that its VMM is there.
    world.calls.on('provisioner.observe', () => world.clock.sleep(5_000, new AbortController().signal), 1, first);
    await world.boot();
    await world.clock.advance(60_000);
    expect(world.host.vmms()).toHaveLength(1);
    expect(world.status('a')?.reason).toBe('Capacity');
  });

  it('on disk hold for a disk whose size its image tells: who has to wait for room holds none of it', async () => {
    const world = new World({ policy: { maxDiskGib: 3 } });
    world.want('a');
    world.want('b', {
      volumes: [
        { name: 'one', sizeGib: 1 },
        { name: 'two', sizeGib: 1 },
      ],
    });
    await world.boot();
    await world.clock.advance(120_000);
    expect(world.status('a')?.phase).toBe('Running');
    expect(world.status('b')).toMatchObject({ phase: 'Pending', reason: 'Capacity' });
    expect(world.host.vmms()).toHaveLength(1);
  });

  it('let no VM in whose boot had failed before the agent started, on the word of that boot', async () => {
    const world = new World({ policy: { maxMemoryMib: 512 } });
    const failing = world.want('a');
    world.host.faultsOf(failing).bootFails = 3;
    await world.boot();
    await world.until(() => world.calls.count('provisioner.boot', failing) === 3);
    world.want('b', { memoryMib: 512 });
    await world.untilPhase('b', 'Running');
    await world.restart();
    await world.clock.advance(60_000);
    expect(world.host.vmms()).toHaveLength(1);
    expect(world.status('a')?.reason).toBe('Capacity');
  });

  it('leave the host its reserve', async () => {
    const world = new World({ policy: { memoryReserveMib: 1_024 } });
    for (const id of ['a', 'b']) world.want(id, { memoryMib: 2_048 });
    await world.boot();
    await world.clock.advance(60_000);
    expect(world.host.vmms()).toHaveLength(1);
    const pending = ['a', 'b'].map((id) => world.status(id)).find((vm) => vm?.reason === 'Capacity');
    expect(pending?.message).toContain('1024 of 3072 (--memory-reserve)');
  });

  it('let exactly two of three simultaneous creates in, also over a restart, and the third when one goes', async () => {
    const world = new World({ policy: { maxMemoryMib: 4096 } });
    const uids = ['a', 'b', 'c'].map((id) => world.want(id, { memoryMib: 2048 }));
    await world.boot();
    await world.clock.advance(60_000);
    expect(world.host.vmms()).toHaveLength(2);
    await world.restart();
    await world.clock.advance(60_000);
    expect(world.host.vmms()).toHaveLength(2);
    const pending = ['a', 'b', 'c'].filter((id) => world.status(id)?.reason === 'Capacity');
    expect(pending).toHaveLength(1);
    expect(world.status(pending[0] ?? '')?.message).toContain('--max-mem-mb');
    const running = uids.find((uid) => world.host.vmm(uid) !== undefined);
    if (running === undefined) throw new Error('none runs');
    world.desired.tombstone(running);
    await world.until(() => world.status(pending[0] ?? '')?.phase === 'Running');
    expect(world.host.vmms()).toHaveLength(2);
  });
});

describe('a changed declaration', () => {
  it('of cpus is told to need a restart, and holds from the next boot', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.want('web-1', { cpus: 2 });
    await world.until(() => world.status('web-1')?.reason === 'RestartRequired');
    expect(world.host.starts(uid)).toBe(1);
    world.want('web-1', { cpus: 2, power: 'stopped' });
    await world.untilPhase('web-1', 'Stopped');
    world.want('web-1', { cpus: 2 });
    await world.untilPhase('web-1', 'Running');
    expect(world.record(uid).spec.cpus).toBe(2);
  });

  it('of the disk grows it at the next boot, and never shrinks it', async () => {
    const world = new World();
    const uid = world.want('web-1', { diskGib: 2 });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.want('web-1', { diskGib: 1 });
    await world.until(() => world.status('web-1')?.reason === 'SpecInvalid');
    expect(world.status('web-1')?.message).toContain('never shrink');
    world.want('web-1', { diskGib: 4, power: 'stopped' });
    await world.untilPhase('web-1', 'Stopped');
    world.want('web-1', { diskGib: 4 });
    await world.untilPhase('web-1', 'Running');
    expect(world.host.files.get(world.record(uid).paths.rootDisk)?.sizeBytes).toBe(4 * GIB);
    expect(world.host.violations).toEqual([]);
  });

  it('of the image is refused for a VM that was booted, and taken for one that was not', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.want('web-1', { image: { kind: 'catalog', name: 'other' } });
    await world.until(() => world.status('web-1')?.reason === 'SpecInvalid');
    expect(world.record(uid).spec.image).toEqual({ kind: 'catalog', name: 'tiny' });

    const fresh = new World();
    fresh.images.downloadMs = 60_000;
    const life = fresh.want('web-2');
    await fresh.boot();
    await fresh.untilPhase('web-2', 'Creating');
    fresh.want('web-2', { image: { kind: 'catalog', name: 'other' } });
    await fresh.untilPhase('web-2', 'Running', 120_000);
    expect(fresh.host.files.get(fresh.record(life).paths.rootDisk)?.content).toBe('image other');
    expect(fresh.images.downloads.has('tiny')).toBe(false);
  });

  it('of the image after a boot that failed is refused too: what the guest wrote is not known', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).bootFails = 1_000;
    await world.boot();
    await world.until(() => world.calls.count('provisioner.boot', uid) === 1);
    world.want('web-1', { image: { kind: 'catalog', name: 'other' } });
    world.host.faultsOf(uid).bootFails = 0;
    await world.untilPhase('web-1', 'Running');
    expect(world.host.files.get(world.record(uid).paths.rootDisk)?.content).toBe('image tiny');
    expect(world.status('web-1')?.reason).toBe('SpecInvalid');
  });

  it('deleted while its image downloads gives the download up', async () => {
    const world = new World();
    world.images.downloadMs = HOUR;
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Creating');
    world.desired.tombstone(uid);
    await world.until(() => world.status('web-1')?.phase === 'Shelved', 30_000);
  });
});

describe('a pass', () => {
  it('that takes too long is aborted and tried again', async () => {
    const world = new World({ policy: { vmTimeoutMs: 60_000 } });
    world.images.downloadMs = 2 * HOUR;
    world.want('web-1');
    await world.boot();
    await world.until(() => world.status('web-1')?.reason === 'WaitingRetry', 90_000);
    expect(world.status('web-1')?.message).toContain('--vm-timeout');
    world.images.downloadMs = 0;
    await world.untilPhase('web-1', 'Running');
  });

  it('that ignores its abort is reported and not doubled, and the others go on', async () => {
    const world = new World({ policy: { vmTimeoutMs: 60_000 } });
    const uid = world.want('web-1');
    world.want('web-2');
    world.calls.hang('provisioner.boot', 1, uid);
    await world.boot();
    await world.until(() => world.status('web-1')?.reason === 'StuckPass', 120_000);
    await world.clock.advance(HOUR);
    expect(world.calls.count('provisioner.boot', uid)).toBe(1);
    expect(world.status('web-2')?.phase).toBe('Running');
  });

  it('that waits for its turn to be made says so, and no longer once it has it', async () => {
    const world = new World({ policy: { maxConcurrentCreates: 1 } });
    world.host.defaultFaults.diskMs = 10_000;
    world.want('a');
    world.want('b');
    await world.boot();
    await world.clock.advance(5_000);
    const waiting = ['a', 'b'].filter((id) => world.status(id)?.reason === 'Throttled');
    expect(waiting.length).toBe(1);
    expect(world.status(waiting[0] ?? '')).toMatchObject({ phase: 'Creating' });
    expect(world.status(waiting[0] ?? '')?.message).toContain('--max-concurrent-creates');
    await world.clock.advance(10_000);
    expect(world.status(waiting[0] ?? '')?.reason).toBeUndefined();
  });

  it('bounds the disk-heavy part of creates', async () => {
    const world = new World({ policy: { maxConcurrentCreates: 2 } });
    let inside = 0;
    let most = 0;
    world.images.downloadMs = 1_000;
    const real = world.images.ensure.bind(world.images);
    Object.assign(world.images, {
      ensure: async (...args: Parameters<typeof real>) => {
        most = Math.max(most, ++inside);
        try {
          return await real(...args);
        } finally {
          inside--;
        }
      },
    });
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const id of ids) world.want(id, { image: { kind: 'catalog', name: id } });
    await world.boot();
    await world.until(() => ids.every((id) => world.status(id)?.phase === 'Running'));
    expect(most).toBe(2);
  });
});

describe('published ports', () => {
  it('are published once the guest runs, retried while busy, and let go when it stops', async () => {
    let busy = true;
    const published: number[] = [];
    let released = 0;
    const world = new World({
      publisher: {
        publish: (_uid, exposures) => {
          published.push(exposures.length);
          const answer = exposures.map((exposure): PublishState =>
            busy ? { exposure, state: 'busy', why: 'another process has it' } : { exposure, state: 'published' },
          );
          return Promise.resolve(answer);
        },
        release: () => {
          released++;
          return Promise.resolve();
        },
      },
    });
    const exposure = { hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' } as const;
    world.want('web-1', { exposures: [exposure] });
    await world.boot();
    await world.until(() => world.status('web-1')?.ports[0]?.state === 'busy');
    await world.clock.advance(20_000);
    expect(published.length).toBeGreaterThanOrEqual(2);
    busy = false;
    await world.until(() => world.status('web-1')?.ports[0]?.state === 'published', 30_000);
    const before = published.length;
    await world.clock.advance(HOUR);
    expect(published).toHaveLength(before);
    world.want('web-1', { exposures: [exposure], power: 'stopped' });
    await world.untilPhase('web-1', 'Stopped');
    expect(released).toBeGreaterThan(0);
    expect(world.status('web-1')?.ports).toEqual([]);
  });

  it('are refused, and said, where nothing can publish them', async () => {
    const world = new World();
    const exposure = { hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' } as const;
    world.want('web-1', { exposures: [exposure] });
    await world.boot();
    await world.until(() => world.status('web-1')?.ports[0]?.state === 'refused');
    expect(world.status('web-1')?.phase).toBe('Running');
  });
});

describe('ports of a guest that ends', () => {
  it.each(['by itself', 'because it is stopped'] as const)('%s are let go of', async (how) => {
    const publisher = new MemoryPublisher();
    const world = new World({ publisher });
    const exposure = { hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' } as const;
    const uid = world.want('web-1', { exposures: [exposure], restart: 'never' });
    await world.boot();
    await world.until(() => publisher.held(uid).length === 1);
    if (how === 'by itself') world.host.crash(uid, 0);
    else world.want('web-1', { exposures: [exposure], restart: 'never', power: 'stopped' });
    await world.untilPhase('web-1', 'Stopped');
    expect(publisher.held(uid)).toEqual([]);
    expect(publisher.calls.members(uid).at(-1)).toBe('portPublisher.release');
  });
});

describe('a VMM that does not answer yet', () => {
  it('is told of as it goes on, and once when it runs, without a word in the report', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).startingMs = 10_000;
    const { engine, events } = await world.boot();
    const told: [string, string, number | undefined][] = [];
    events.listen(({ type, message, progress }) => {
      if (type === 'vm.boot' || type === 'vm.running') told.push([type, message, progress]);
    });
    await world.untilPhase('web-1', 'Starting');
    await world.until(() => told.length > 1);
    let changes = 0;
    const leave = engine.onReport(() => changes++);
    await world.clock.advance(3_000);
    leave();
    expect(changes).toBe(0);
    await world.untilPhase('web-1', 'Running');
    await world.clock.advance(60_000);
    expect(told.length).toBeGreaterThan(8);
    expect(told[2]).toEqual(['vm.boot', expect.stringMatching(/^starting: \d+ s since its VMM was started$/), 0]);
    expect(told.at(-1)).toEqual(['vm.running', expect.stringMatching(/^running \d+ s after/), undefined]);
    expect(told.filter(([type]) => type === 'vm.running')).toHaveLength(1);
  });
});

describe('the images that must be kept', () => {
  const digest = (hex: string) => ({ algorithm: 'sha256', hex }) as const;
  const image = (hex: string) => ({ kind: 'url', url: `https://images.test/${hex}`, digest: digest(hex) }) as const;

  it('are those of records and of declarations, also of a VM that is not made yet', async () => {
    const world = new World();
    world.want('web-1', { image: image('aa') });
    world.want('web-2', { image: image('bb'), power: 'stopped' });
    world.desired.vanish(world.want('web-3', { image: image('aa'), power: 'stopped' }));
    const { engine } = await world.boot();
    await world.untilPhase('web-1', 'Running');
    expect(engine.imagesInUse()).toEqual([digest('aa'), digest('bb')]);
  });

  it('can not be told while a record can not be read', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.state.damage(uid);
    const { engine } = await world.boot();
    expect(engine.imagesInUse()).toBeUndefined();
  });
});

describe('the report', () => {
  it('is sorted, and its bytes do not change while nothing does', async () => {
    const world = new World();
    for (const id of ['c', 'a', 'b']) world.want(id);
    const agent = await world.boot();
    await world.until(() => ['a', 'b', 'c'].every((id) => world.status(id)?.phase === 'Running'));
    const before = JSON.stringify(agent.engine.report());
    let changes = 0;
    agent.engine.onReport(() => changes++);
    await world.clock.advance(HOUR);
    expect(JSON.stringify(agent.engine.report())).toBe(before);
    expect(changes).toBe(0);
    expect(agent.engine.report().vms.map((vm) => vm.id)).toEqual(['a', 'b', 'c']);
  });

  it('stays as it was when the agent ends', async () => {
    const world = new World();
    world.want('web-1');
    const agent = await world.boot();
    await world.untilPhase('web-1', 'Running');
    const before = JSON.stringify(agent.engine.report());
    const over = agent.engine.quiesce(5_000);
    await world.clock.advance(5_000);
    expect(await over).toBe(true);
    expect(JSON.stringify(agent.engine.report())).toBe(before);
    expect(world.host.vmms()).toHaveLength(1);
  });
});

describe('a failing port', () => {
  it('with a permanent error from the disk service fails the VM with its code', async () => {
    const world = new World();
    world.want('web-1');
    world.calls.fail(
      'diskService.cloneRootDisk',
      permanent('disk is smaller than its image', { code: 'DiskTooSmall' }),
    );
    await world.boot();
    await world.untilPhase('web-1', 'Failed');
    expect(world.status('web-1')).toMatchObject({ reason: 'DiskTooSmall' });
  });

  it('of a missing disk after a boot is an error, and no new disk is made', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.host.reboot();
    world.host.files.delete(world.record(uid).paths.rootDisk);
    await world.boot();
    await world.untilPhase('web-1', 'Failed');
    expect(world.status('web-1')?.message).toContain('is missing');
    expect(world.calls.count('provisioner.prepareRootDisk', uid)).toBe(1);
  });
});
