/** How the engine brings a VM up for the first time, and what it does when that fails. */
import { describe, expect, it } from 'vitest';
import { World } from '../../../../support/world.js';

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
