/** Whom the engine lets in, and what a changed declaration does. */
import { describe, expect, it } from 'vitest';
import { GIB } from '@eitri/core/kit';
import { World } from '../../../../support/world.js';

const HOUR = 3_600_000;

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
