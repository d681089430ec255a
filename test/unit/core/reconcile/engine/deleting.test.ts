/** What becomes of a VM that is deleted, or no longer declared. */
import { describe, expect, it } from 'vitest';
import { World } from '../../../../support/world.js';

const HOUR = 3_600_000;

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
