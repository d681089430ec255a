/**
 * The agent is killed at every call of every injected port, before it and right after it, while VMs are created, stopped,
 * restarted and destroyed. The next start must end where the first one would have: one VMM a VM, no disk lost, nothing left.
 */
import { describe, expect, it } from 'vitest';
import type { VmUid } from '@eitri/core/contracts';
import { World } from '../support/world.js';

interface Story {
  readonly name: string;
  /** Brings the world to where the sweep begins. */
  readonly before: (world: World) => Promise<VmUid>;
  /** What the operator asks for then. */
  readonly ask: (world: World, uid: VmUid) => void;
  readonly reached: (world: World, uid: VmUid) => boolean;
}

const runningVm = async (world: World): Promise<VmUid> => {
  const uid = world.want('web-1', SPEC);
  await world.boot();
  await world.untilPhase('web-1', 'Running');
  return uid;
};

const SPEC = { diskGib: 2, volumes: [{ name: 'data', sizeGib: 1 }] };

const gone = (world: World, uid: VmUid): boolean =>
  world.status('web-1') === undefined && world.state.record(uid) === undefined && world.host.vmms().length === 0;

const stories: readonly Story[] = [
  {
    name: 'create',
    before: async (world) => {
      await world.boot();
      return world.want('placeholder', { power: 'stopped' });
    },
    ask: (world) => {
      world.want('web-1', SPEC);
    },
    reached: (world) => world.status('web-1')?.phase === 'Running',
  },
  {
    name: 'stop',
    before: runningVm,
    ask: (world) => {
      world.want('web-1', { ...SPEC, power: 'stopped' });
    },
    reached: (world) => world.status('web-1')?.phase === 'Stopped' && world.host.vmms().length === 0,
  },
  {
    name: 'restart after the guest ended',
    before: runningVm,
    ask: (world, uid) => {
      world.host.crash(uid, 1);
    },
    reached: (world, uid) => world.status('web-1')?.phase === 'Running' && world.host.starts(uid) >= 2,
  },
  {
    name: 'destroy',
    before: runningVm,
    ask: (world, uid) => {
      world.desired.tombstone(uid);
    },
    reached: gone,
  },
];

describe.each(stories)('an agent killed during $name', (story) => {
  it('at any call ends in the desired state after its next start', async () => {
    const total = await callsOf(story);
    expect(total).toBeGreaterThan(8);
    for (let at = 0; at < total; at++) await killedAt(story, at);
  });
});

/** How many ends and beginnings of calls the story has when nothing happens. */
async function callsOf(story: Story): Promise<number> {
  const world = new World();
  const uid = await story.before(world);
  let count = 0;
  world.killAt(() => {
    count++;
    return false;
  });
  story.ask(world, uid);
  await world.until(() => story.reached(world, uid));
  return count;
}

async function killedAt(story: Story, at: number): Promise<void> {
  const world = new World();
  const uid = await story.before(world);
  const diskOf = (): number | undefined => world.host.files.get(world.state.pathsOf(uid).rootDisk)?.inode;
  const disk = diskOf();
  let count = 0;
  let where = 'nowhere';
  world.killAt((call) => {
    where = `${call.phase} ${call.member}`;
    return count++ === at;
  });
  story.ask(world, uid);
  await world.until(() => world.killed || story.reached(world, uid));
  await world.kill();
  await world.boot();
  const context = `killed ${where} (${at})`;
  try {
    await world.until(() => story.reached(world, uid));
  } catch (cause) {
    throw new Error(context, { cause });
  }
  await world.clock.advance(120_000);
  expect(story.reached(world, uid), context).toBe(true);
  expect(world.host.violations, context).toEqual([]);
  // Two starts of one VMM would show as two VMMs, or as a start that was refused.
  for (const vmm of world.host.vmms())
    expect(
      world.host.vmms().filter((v) => v.uid === vmm.uid),
      context,
    ).toHaveLength(1);
  if (story.reached !== gone && disk !== undefined) expect(diskOf(), context).toBe(disk);
  // A volume outlives its VM.
  if (world.host.files.has('/state/volumes/data.raw') || story.reached === gone) {
    expect(world.host.files.has('/state/volumes/data.raw'), context).toBe(true);
  }
  if (story.reached === gone) {
    expect(world.host.list(world.state.pathsOf(uid).folder), context).toEqual([]);
    expect(world.host.list(world.state.pathsOf(uid).runFolder), context).toEqual([]);
    expect(world.host.network.taps(uid), context).toEqual([]);
    expect(world.disks.claims.size, context).toBe(0);
  }
}
