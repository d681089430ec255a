/** What the engine tells of its VMs, and what it keeps for them. */
import { describe, expect, it } from 'vitest';
import type { PublishState } from '@eitri/core/contracts';
import { MemoryPublisher } from '../../../../support/memory-publisher.js';
import { World } from '../../../../support/world.js';

const HOUR = 3_600_000;

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
