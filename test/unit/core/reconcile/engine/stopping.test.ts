/** How the engine shuts a guest down. */
import { describe, expect, it } from 'vitest';
import { World } from '../../../../support/world.js';

const HOUR = 3_600_000;

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
