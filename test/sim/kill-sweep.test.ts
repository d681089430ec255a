/**
 * The agent is killed at every call of every injected port, before it and right after it, while VMs are created, stopped,
 * restarted and destroyed. The next start must end where the first one would have: one VMM a VM, no disk lost, nothing left.
 */
import type { PortMember } from '@eitri/conformance';
import { describe, expect, it } from 'vitest';
import type { VmUid } from '@eitri/core/contracts';
import { MemoryPublisher } from '../support/memory-publisher.js';
import { World } from '../support/world.js';

interface Story {
  readonly name: string;
  /** Brings the world to where the sweep begins. */
  readonly before: (world: World) => Promise<void>;
  /** What the operator asks for then; answers whom it is about. */
  readonly ask: (world: World) => VmUid;
  readonly reached: (world: World, uid: VmUid) => boolean;
  /** Calls that must be among those it is killed at. */
  readonly members: readonly PortMember[];
}

const SPEC = {
  diskGib: 2,
  volumes: [{ name: 'data', sizeGib: 1 }],
  exposures: [{ hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
} as const;
const VOLUME = '/state/volumes/data.raw';

const runningVm = async (world: World): Promise<void> => {
  world.want('web-1', SPEC);
  await world.boot();
  await world.until(() => published(world));
};

const published = (world: World): boolean =>
  world.status('web-1')?.phase === 'Running' && world.status('web-1')?.ports[0]?.state === 'published';

const gone = (world: World, uid: VmUid): boolean =>
  world.status('web-1') === undefined && world.state.record(uid) === undefined && world.host.vmms().length === 0;

const stories: readonly Story[] = [
  {
    name: 'create',
    before: async (world) => {
      await world.boot();
    },
    ask: (world) => world.want('web-1', SPEC),
    reached: published,
    members: ['diskService.cloneRootDisk', 'diskService.ensureVolume', 'provisioner.boot', 'portPublisher.publish'],
  },
  {
    name: 'stop',
    before: runningVm,
    ask: (world) => world.want('web-1', { ...SPEC, power: 'stopped' }),
    reached: (world) => world.status('web-1')?.phase === 'Stopped' && world.host.vmms().length === 0,
    members: ['provisioner.shutdown', 'portPublisher.release'],
  },
  {
    name: 'restart after the guest ended',
    before: runningVm,
    ask: (world) => {
      const uid = world.want('web-1', SPEC);
      world.host.crash(uid, 1);
      return uid;
    },
    reached: (world, uid) => published(world) && world.host.starts(uid) >= 2,
    members: ['portPublisher.release', 'provisioner.failureReason', 'provisioner.boot', 'portPublisher.publish'],
  },
  {
    name: 'destroy',
    before: runningVm,
    ask: (world) => {
      const uid = world.want('web-1', SPEC);
      world.desired.tombstone(uid);
      return uid;
    },
    reached: gone,
    members: ['provisioner.destroy', 'portPublisher.release', 'diskService.releaseVolumes', 'stateStore.removeVm'],
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
  const world = new World({ publishes: true });
  await story.before(world);
  const members = new Set<PortMember>();
  let count = 0;
  world.killAt((call) => {
    members.add(call.member);
    count++;
    return false;
  });
  const uid = story.ask(world);
  await world.until(() => story.reached(world, uid));
  expect([...members]).toEqual(expect.arrayContaining([...story.members]));
  return count;
}

async function killedAt(story: Story, at: number): Promise<void> {
  const world = new World({ publishes: true });
  await story.before(world);
  let count = 0;
  let where = 'nowhere';
  world.killAt((call) => {
    where = `${call.phase} ${call.member}`;
    return count++ === at;
  });
  const uid = story.ask(world);
  await world.until(() => world.killed || story.reached(world, uid));
  expect(world.killed).toBe(true);
  const context = `killed ${where} (${at})`;
  // From the first attempt to boot on its disk belongs to the guest.
  const paths = world.state.pathsOf(uid);
  const diskOf = (): number | undefined => world.host.files.get(paths.rootDisk)?.inode;
  const disk = world.state.record(uid)?.bootAttempted === true ? diskOf() : undefined;
  await world.kill();
  await world.boot();
  try {
    await world.until(() => story.reached(world, uid));
  } catch (cause) {
    throw new Error(context, { cause });
  }
  await world.clock.advance(120_000);
  expect(story.reached(world, uid), context).toBe(true);
  // A second VMM on a disk, and a disk made anew, are among these.
  expect(world.host.violations, context).toEqual([]);
  expect(world.host.vmms().length, context).toBe(story.reached === gone || story.name === 'stop' ? 0 : 1);
  if (story.reached !== gone && disk !== undefined) expect(diskOf(), context).toBe(disk);
  // A volume outlives its VM.
  if (world.host.starts(uid) > 0) expect(world.host.files.has(VOLUME), context).toBe(true);
  const { publisher } = world.agent ?? {};
  if (!(publisher instanceof MemoryPublisher)) throw new Error('the agent publishes nothing');
  expect(publisher.held(uid), context).toHaveLength(world.host.vmms().length);
  if (story.reached === gone) {
    expect(world.host.list(paths.folder), context).toEqual([]);
    expect(world.host.list(paths.runFolder), context).toEqual([]);
    expect(world.host.network.taps(uid), context).toEqual([]);
    expect(world.disks.claims.size, context).toBe(0);
  }
}
