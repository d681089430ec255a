/**
 * The agent is killed at every call of every injected port, before it and right after it, and at every call of its file
 * system, while VMs are created, stopped, restarted and destroyed; and the machine loses its power there. The next start
 * must end where the first one would have: one VMM a VM, no disk lost, nothing left.
 */
import { sampleSpec } from '@eitri/conformance';
import { describe, expect, it } from 'vitest';
import type { VmSpec, VmUid } from '@eitri/core/contracts';
import { FileWorld } from '../support/file-world.js';
import { Plane } from '../support/history/plane.js';
import { Prng } from '../support/history/prng.js';
import { MemoryPublisher } from '../support/memory-publisher.js';
import type { WorldCall } from '../support/world.js';

/** A world with a control plane that says what is declared there. */
class Host extends FileWorld {
  readonly plane = new Plane(this, 'local');

  constructor() {
    super({ publishes: true });
  }

  async up(): Promise<void> {
    await this.boot();
    this.plane.connect();
    await this.clock.advance(0);
  }

  declare(changes: Partial<VmSpec> = {}): void {
    this.plane.declare('web-1', sampleSpec('web-1', { ...SPEC, ...changes }));
    this.plane.speak();
  }

  /** The life that was declared first. */
  get uid(): VmUid | undefined {
    return this.current()?.lives[0]?.uid;
  }
}

interface Story {
  readonly name: string;
  /** Brings the world to where the sweep begins. */
  readonly before: (world: Host) => Promise<void>;
  /** What the operator asks for then. */
  readonly ask: (world: Host) => void;
  readonly reached: (world: Host) => boolean;
  /** Calls that must be among those it is killed at. */
  readonly members: readonly WorldCall['member'][];
}

const SPEC = {
  diskGib: 2,
  volumes: [{ name: 'data', sizeGib: 1 }],
  exposures: [{ hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
} as const;
const VOLUME = '/state/volumes/data.raw';

const runningVm = async (world: Host): Promise<void> => {
  world.declare();
  await world.up();
  await world.until(() => published(world));
};

const published = (world: Host): boolean =>
  world.status('web-1')?.phase === 'Running' && world.status('web-1')?.ports[0]?.state === 'published';

const gone = (world: Host): boolean =>
  world.status('web-1') === undefined && world.recorded().length === 0 && world.host.vmms().length === 0;

const stories: readonly Story[] = [
  {
    name: 'create',
    before: (world) => world.up(),
    ask: (world) => {
      world.declare();
    },
    reached: published,
    members: [
      'diskService.cloneRootDisk',
      'diskService.ensureVolume',
      'provisioner.boot',
      'portPublisher.publish',
      'desiredStore.accept',
      'files.makeFolder',
      'files.sync',
      'files.rename',
      'files.syncFolder',
    ],
  },
  {
    name: 'stop',
    before: runningVm,
    ask: (world) => {
      world.declare({ power: 'stopped' });
    },
    reached: (world) => world.status('web-1')?.phase === 'Stopped' && world.host.vmms().length === 0,
    members: ['provisioner.shutdown', 'portPublisher.release'],
  },
  {
    name: 'restart after the guest ended',
    before: runningVm,
    ask: (world) => {
      if (world.uid !== undefined) world.host.crash(world.uid, 1);
    },
    reached: (world) => published(world) && world.uid !== undefined && world.host.starts(world.uid) >= 2,
    members: ['portPublisher.release', 'provisioner.failureReason', 'provisioner.boot', 'portPublisher.publish'],
  },
  {
    name: 'destroy',
    before: runningVm,
    ask: (world) => {
      world.plane.bury('web-1');
      world.plane.speak();
    },
    reached: gone,
    members: [
      'provisioner.destroy',
      'portPublisher.release',
      'diskService.releaseVolumes',
      'stateStore.removeVm',
      'files.remove',
      'files.removeFolder',
    ],
  },
];

describe.each(stories)('an agent killed during $name', (story) => {
  it('at any call ends in the desired state after its next start', async () => {
    const total = await callsOf(story);
    expect(total).toBeGreaterThan(8);
    for (let at = 0; at < total; at++) await killedAt(story, at, undefined);
  });

  it('at any call by a power cut ends there too, whatever of the unsynced was lost', async () => {
    const total = await callsOf(story);
    for (let at = 0; at < total; at++) await killedAt(story, at, new Prng(at));
  });
});

/** How many ends and beginnings of calls the story has when nothing happens. */
async function callsOf(story: Story): Promise<number> {
  const world = new Host();
  await story.before(world);
  const members = new Set<WorldCall['member']>();
  let count = 0;
  world.killAt((call) => {
    members.add(call.member);
    count++;
    return false;
  });
  story.ask(world);
  await world.until(() => story.reached(world));
  expect([...members]).toEqual(expect.arrayContaining([...story.members]));
  return count;
}

async function killedAt(story: Story, at: number, powerCut: Prng | undefined): Promise<void> {
  const world = new Host();
  await story.before(world);
  let count = 0;
  let where = 'nowhere';
  world.killAt((call) => {
    where = `${call.phase} ${call.member}`;
    return count++ === at;
  });
  story.ask(world);
  await world.until(() => world.killed || story.reached(world));
  expect(world.killed).toBe(true);
  const context = `killed ${where} (${at})`;
  await world.kill();
  if (powerCut !== undefined) world.reboot(powerCut);
  // From the first attempt to boot on its disk belongs to the guest.
  const [uid] = world.recorded();
  const diskOf = (): number | undefined =>
    uid === undefined ? undefined : world.host.files.get(world.pathsOf(uid).rootDisk)?.inode;
  const disk = uid !== undefined && world.record(uid)?.bootAttempted === true ? diskOf() : undefined;
  await world.up();
  try {
    await world.until(() => story.reached(world));
  } catch (cause) {
    throw new Error(context, { cause });
  }
  await world.clock.advance(120_000);
  expect(story.reached(world), context).toBe(true);
  expect(world.plane.trouble, context).toBe(undefined);
  // A second VMM on a disk, and a disk made anew, are among these.
  expect(world.host.violations, context).toEqual([]);
  expect(world.host.vmms().length, context).toBe(story.reached === gone || story.name === 'stop' ? 0 : 1);
  if (story.reached !== gone && disk !== undefined) expect(diskOf(), context).toBe(disk);
  // A volume outlives its VM.
  if (uid !== undefined && world.host.starts(uid) > 0) expect(world.host.files.has(VOLUME), context).toBe(true);
  const { publisher } = world.agent ?? {};
  if (!(publisher instanceof MemoryPublisher)) throw new Error('the agent publishes nothing');
  const held = world.recorded().flatMap((one) => publisher.held(one));
  expect(held, context).toHaveLength(world.host.vmms().length);
  if (story.reached === gone) {
    expect(world.files.below('/state/vms'), context).toEqual([]);
    expect(world.host.list('/state/vms'), context).toEqual([]);
    expect(world.host.list('/run'), context).toEqual([]);
    expect(world.host.network.taps(), context).toEqual([]);
    expect(world.disks.claims.size, context).toBe(0);
  }
}
