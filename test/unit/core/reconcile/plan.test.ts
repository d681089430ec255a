import { describe, expect, it } from 'vitest';
import { sampleSpec, sampleUid } from '@eitri/conformance';
import type { DesiredLife, VmSpec, VmUid } from '@eitri/core/contracts';
import type { VmPlan } from '@eitri/core/reconcile';
import { foretell } from '../../../support/foretold.js';
import { World } from '../../../support/world.js';

const MINUTE = 60_000;
function planned(world: World, lives?: readonly DesiredLife[]): readonly VmPlan[] {
  const { engine } = world.agent ?? {};
  if (engine === undefined) throw new Error('there is no agent');
  return engine.plan(lives);
}

function planOf(world: World, id: string, lives?: readonly DesiredLife[]): VmPlan {
  const plan = planned(world, lives).find((one) => one.id === id);
  if (plan === undefined) throw new Error(`no plan of ${id}`);
  return plan;
}

const stepsOf = ({ steps }: VmPlan): readonly string[] => steps.map((step) => step.do);

/** Everything that is known of the world, to be compared. */
const memory = (world: World): string =>
  JSON.stringify([
    world.agent?.engine.report(),
    world.agent?.engine.held(),
    [...world.host.files.keys()],
    world.calls.entries.length,
    world.desired.current(),
  ]);

/** Plans, lets it happen, and holds what follows against the plan. */
async function expectForetold(world: World, change: () => void, withinMs: number): Promise<readonly VmPlan[]> {
  change();
  const { plans, surprises } = foretell(world);
  await world.clock.advance(withinMs);
  expect(surprises()).toEqual([]);
  return plans;
}

describe('a plan', () => {
  it('of a host that is as declared has nothing to do, and says so', async () => {
    const world = new World();
    world.want('web-1');
    world.want('web-2', { power: 'stopped' });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    expect(planned(world).map(({ id, steps, asWanted }) => [id, steps.length, asWanted])).toEqual([
      ['web-1', 0, true],
      ['web-2', 0, true],
    ]);
  });

  it('changes nothing and asks nobody, whatever it is asked', async () => {
    const world = new World({ policy: { maxMemoryMib: 300 } });
    const uid = world.want('web-1');
    world.want('web-2');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.tombstone(uid);
    const before = memory(world);
    for (let times = 0; times < 3; times++) planned(world, [declared(sampleUid(77), 'other')]);
    expect(memory(world)).toBe(before);
    await world.until(() => world.status('web-1') === undefined);
    expect(world.status('web-2')?.phase).toBe('Running');
  });

  it('of a new VM is its whole way, each step with its reason, and comes true', async () => {
    const world = new World();
    await world.boot();
    const plans = await expectForetold(
      world,
      () => {
        world.want('web-1', { diskGib: 2, volumes: [{ name: 'data', sizeGib: 1 }] });
      },
      MINUTE,
    );
    const [plan] = plans;
    expect(plan?.steps.map((step) => step.do)).toEqual([
      'create',
      'fetchImage',
      'prepareDisk',
      'prepareVolumes',
      'buildSeed',
      'boot',
    ]);
    expect(plan?.steps.every(({ why, what, inMs }) => why !== '' && what !== '' && inMs === 0)).toBe(true);
    expect(plan?.end).toMatchObject({ kind: 'rest', rest: { phase: 'Running' } });
    expect(world.status('web-1')?.phase).toBe('Running');
  });

  it('with other declarations than those that hold is what would be done with them', async () => {
    const world = new World();
    await world.boot();
    const plan = planOf(world, 'web-9', [declared(sampleUid(9), 'web-9')]);
    expect(stepsOf(plan)).toEqual(['create', 'fetchImage', 'prepareDisk', 'buildSeed', 'boot']);
    await world.clock.advance(MINUTE);
    expect(world.agent?.engine.report().vms).toEqual([]);
  });

  it.each([
    ['stopped', ['applySpec', 'shutdown', 'noteExit'], 'Stopped'],
    ['deleted', ['shutdown', 'noteExit', 'destroy'], 'gone'],
    ['grown', [], 'Running'],
  ])('of a VM that is %s comes true', async (how, steps, end) => {
    const world = new World();
    const uid = world.want('web-1', { diskGib: 2 });
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    const change = (): void => {
      if (how === 'stopped') world.want('web-1', { diskGib: 2, power: 'stopped' });
      else if (how === 'deleted') world.desired.tombstone(uid);
      else world.want('web-1', { diskGib: 4 });
    };
    const [plan] = await expectForetold(world, change, 10 * MINUTE);
    expect(plan?.steps.map((step) => step.do)).toEqual(steps);
    expect(plan?.end.kind === 'gone' ? 'gone' : plan?.end.rest.phase).toBe(end);
    expect(plan?.asWanted).toBe(false);
  });

  it('tells when a grace is over, also after half of it, and what is waited for', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.tombstone(uid);
    await world.untilPhase('web-1', 'Shelved');
    const shelved = world.clock.monotonicMs();
    await world.clock.advance(2 * MINUTE);
    const [step] = planOf(world, 'web-1').steps;
    expect(step).toMatchObject({ do: 'destroy', waited: { reason: 'ShelvedTombstoned' } });
    await world.until(() => world.status('web-1') === undefined);
    const took = world.clock.monotonicMs() - shelved - 2 * MINUTE;
    expect(Math.abs(took - (step?.inMs ?? 0))).toBeLessThanOrEqual(1_000);
  });

  it('of a grace that is not counted, for want of contact, has no deadline', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.vanish(uid);
    expect(planOf(world, 'web-1').steps.map(({ do: what, inMs }) => [what, inMs])).toEqual([
      ['shutdown', 60 * MINUTE],
      ['noteExit', 60 * MINUTE],
      ['destroy', 60 * MINUTE],
    ]);
    world.desired.setContact(false);
    const plan = planOf(world, 'web-1');
    expect(plan.steps).toEqual([]);
    expect(plan.end).toMatchObject({ rest: { reason: 'ShelvedVanished' } });
    expect(plan.end.kind === 'rest' && plan.end.rest.message).toContain('not counted');
  });

  it('of a held VM does nothing and is not as wanted', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.desired.vanish(uid, true);
    expect(planOf(world, 'web-1')).toMatchObject({
      steps: [],
      asWanted: false,
      end: { rest: { reason: 'HeldMassVanish' } },
    });
  });

  it('of a failed attempt says when the next one is', async () => {
    const world = new World();
    const uid = world.want('web-1');
    world.host.faultsOf(uid).bootFails = 1;
    await world.boot();
    await world.until(() => world.status('web-1')?.reason === 'WaitingRetry');
    const [plan] = await expectForetold(world, () => undefined, MINUTE);
    expect(plan?.steps).toMatchObject([{ do: 'boot', waited: { reason: 'WaitingRetry' } }]);
    expect(plan?.steps[0]?.inMs).toBeGreaterThan(4_000);
  });

  it('of a VM whose guest keeps ending tells the backoff', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    world.host.crash(uid, { code: 1, cause: 'triple fault' });
    await world.until(() => world.status('web-1')?.reason === 'CrashLooping');
    const [plan] = await expectForetold(world, () => undefined, MINUTE);
    expect(plan?.steps).toMatchObject([{ do: 'boot', waited: { reason: 'CrashLooping' } }]);
  });
});

describe('a plan of several VMs', () => {
  it('that want the last gigabyte shows who gets it, by name, and which cap says no to the others', async () => {
    const world = new World({ policy: { maxMemoryMib: 4_096 } });
    await world.boot();
    const lives = ['c', 'b', 'a'].map((id, n) => declared(sampleUid(n + 1), id, { memoryMib: 2_048 }));
    const { plans, surprises } = foretell(world, lives);
    const vms = lives.map(({ uid, spec }) => ({ uid, spec }));
    const word = { lineage: 'test', epoch: 1, vms, tombstones: [], unreadable: [], issues: [] };
    await world.desired.accept(word, new AbortController().signal);
    await world.clock.advance(MINUTE);
    expect(surprises()).toEqual([]);
    expect(plans.map(({ id, steps }) => [id, steps.length > 0])).toEqual([
      ['a', true],
      ['b', true],
      ['c', false],
    ]);
    expect(plans[2]?.end).toMatchObject({
      rest: { reason: 'Capacity', message: 'needs 2048 MiB of memory, 0 of 4096 (--max-mem-mb) are free' },
    });
  });

  it('gives what one frees to another that waits for it, and says when', async () => {
    const world = new World({ policy: { maxMemoryMib: 300, maxDiskGib: 3 } });
    const first = world.want('a', { diskGib: 2 });
    await world.boot();
    await world.untilPhase('a', 'Running');
    world.want('b', { diskGib: 1 });
    world.want('c', { diskGib: 2 });
    await world.until(() => world.status('b')?.reason === 'Capacity' && world.status('c')?.reason === 'Capacity');
    const plans = await expectForetold(
      world,
      () => {
        world.desired.tombstone(first);
      },
      10 * MINUTE,
    );
    const [a, b, c] = plans;
    expect(a?.steps.at(-1)).toMatchObject({ do: 'destroy', inMs: 5 * MINUTE });
    expect(b?.steps[0]).toMatchObject({ do: 'create', inMs: 0, waited: { reason: 'Capacity' } });
    // Its memory is taken by then.
    expect(c).toMatchObject({ steps: [], end: { rest: { reason: 'Capacity' } } });
  });

  it('after a reboot of the host lets them come up in their order', async () => {
    const world = new World({ policy: { maxConcurrentBoots: 1 } });
    for (const id of ['a', 'b', 'c']) world.want(id);
    await world.boot();
    await world.until(() => ['a', 'b', 'c'].every((id) => world.status(id)?.phase === 'Running'));
    await world.kill();
    world.host.reboot();
    for (const uid of [1, 2, 3].map(sampleUid)) world.host.faultsOf(uid).startingMs = 5_000;
    await world.boot();
    await world.clock.advance(0);
    await world.until(() => world.status('c')?.reason === 'RecoveringAfterReboot', 4_000);
    const plans = await expectForetold(world, () => undefined, MINUTE);
    expect(plans.map(({ id, steps }) => [id, steps.map((step) => step.do)])).toEqual([
      ['a', []],
      ['b', ['boot']],
      ['c', ['boot']],
    ]);
    expect(plans[2]?.steps[0]).toMatchObject({ waited: { reason: 'RecoveringAfterReboot' } });
  });

  it('of a thousand is made in a moment', async () => {
    const world = new World({ policy: { maxMemoryMib: 256 * 500 } });
    await world.boot();
    const lives = Array.from({ length: 1_000 }, (_, n) => declared(sampleUid(n), `vm-${String(n)}`));
    const began = performance.now();
    const plans = planned(world, lives);
    expect(plans.filter(({ steps }) => steps.length > 0)).toHaveLength(500);
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

describe('a plan of a VM that can not be worked on', () => {
  it('because its record can not be read: says so, and what the name of it waits for', async () => {
    const world = new World();
    const uid = world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.state.damage(uid);
    await world.boot();
    expect(planOf(world, 'web-1')).toMatchObject({
      steps: [],
      asWanted: false,
      end: { rest: { reason: 'RecordUnreadable' } },
    });
  });

  it('because nothing was seen of it yet: starts nothing a second time', async () => {
    const world = new World();
    world.want('web-1');
    await world.boot();
    await world.untilPhase('web-1', 'Running');
    await world.kill();
    world.calls.on('provisioner.observe', () => new Promise<void>(() => undefined), 1);
    await world.boot();
    expect(planOf(world, 'web-1')).toMatchObject({ steps: [], end: { rest: { reason: 'Unknown' } } });
  });

  it('because a pass hangs: tells of the pass', async () => {
    const world = new World({ policy: { vmTimeoutMs: 10_000, stuckAfterMs: 1_000 } });
    world.want('web-1');
    world.calls.on('imageSource.ensure', () => new Promise<void>(() => undefined), 1);
    await world.boot();
    await world.until(() => world.status('web-1')?.reason === 'StuckPass');
    expect(planOf(world, 'web-1')).toMatchObject({ steps: [], end: { rest: { reason: 'StuckPass' } } });
  });

  it('because it fetches its image just now: the step is under way', async () => {
    const world = new World();
    world.want('web-1');
    world.calls.on('imageSource.ensure', () => world.clock.sleep(30_000, new AbortController().signal), 1);
    await world.boot();
    await world.until(() => world.status('web-1')?.reason === 'ImageDownloading');
    const [first, second] = planOf(world, 'web-1').steps;
    expect([first?.do, first?.underWay, second?.underWay]).toEqual(['fetchImage', true, false]);
  });
});

const declared = (uid: VmUid, id: string, changes: Partial<VmSpec> = {}): DesiredLife => {
  const spec = sampleSpec(id, changes);
  return { kind: 'present', uid, id: spec.id, spec };
};
