/** What the engine makes of a guest that runs, stands still, ends, or is left in peace. */
import { describe, expect, it } from 'vitest';
import type { VmSpec, VmUid } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { World } from '../../../../support/world.js';

const HOUR = 3_600_000;

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
