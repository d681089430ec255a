/** What an agent finds at its start, and what it makes of it. */
import { describe, expect, it } from 'vitest';
import type { VmUid } from '@eitri/core/contracts';
import { World } from '../../../../support/world.js';

const HOUR = 3_600_000;

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
