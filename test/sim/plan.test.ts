/**
 * Plans in the middle of anything: at every moment of a random history there is one, it comes to an end, asking twice gives
 * the same, and what it foresees for a host on which nothing fails any more comes true.
 */
import { describe, expect, it } from 'vitest';
import type { DesiredLife, PowerState } from '@eitri/core/contracts';
import { foretell } from '../support/foretold.js';
import { unsettled } from '../support/history/end.js';
import { Scene } from '../support/history/scene.js';
import { historyOf } from '../support/history/steps.js';

const HISTORIES = 200;
const AT_ONCE = 50;
const ranges = Array.from({ length: HISTORIES / AT_ONCE }, (_, at) => at * AT_ONCE);

/** Answers what is wrong with the plan of this moment. */
function troubleWith({ world }: Scene): string | undefined {
  const { engine } = world.agent ?? {};
  if (engine === undefined || world.killed) return undefined;
  const calls = world.calls.entries.length;
  const report = JSON.stringify(engine.report());
  const held = JSON.stringify(engine.held());
  const plans = engine.plan();
  if (JSON.stringify(engine.plan()) !== JSON.stringify(plans)) return 'it differs when it is asked for twice';
  if (JSON.stringify(plans).includes('goes in a circle')) return `it has no end: ${JSON.stringify(plans)}`;
  if (
    plans.map(({ uid }) => uid).join() !==
    engine
      .report()
      .vms.map(({ uid }) => uid)
      .join()
  )
    return 'VMs are missing';
  const same = JSON.stringify(engine.report()) === report && JSON.stringify(engine.held()) === held;
  return same && world.calls.entries.length === calls ? undefined : 'it changed something';
}

async function settled(scene: Scene): Promise<boolean> {
  for (let passed = 0; passed < 240_000; passed += 5_000) {
    if (!scene.resync() && unsettled(scene).length === 0) {
      await scene.pass(15_000);
      return true;
    }
    await scene.pass(5_000);
  }
  return false;
}

const sized = ({ world }: Scene): boolean =>
  (world.current()?.lives ?? []).every(({ spec }) => spec.diskGib !== undefined);

const powered = (life: DesiredLife, power: PowerState): DesiredLife =>
  life.kind === 'present' ? { ...life, spec: { ...life.spec, power } } : life;

async function checkHistory(seed: number): Promise<void> {
  const history = historyOf(seed);
  const scene = new Scene(history);
  await scene.start();
  for (const step of history.steps) {
    await scene.play(step);
    const trouble = troubleWith(scene);
    if (trouble !== undefined) throw new Error(`history ${String(seed)}: the plan: ${trouble}`);
  }
  await scene.calm();
  const { world } = scene;
  // A VM that was given up stays so: no plan of it can be held against what follows. Nor can one where the size of an image,
  // which is not known before it is here, decides who fits.
  const isForeseeable = history.caps.diskGib === 0 || sized(scene);
  if ((await settled(scene)) && isForeseeable) {
    for (const life of world.current()?.lives ?? []) {
      const lives = world.current()?.lives ?? [];
      const { surprises } = foretell(
        world,
        lives.map((one) => (one.uid === life.uid ? powered(one, 'stopped') : one)),
      );
      if (life.kind === 'present') scene.declare(life.id, powered(life, 'stopped').spec);
      await scene.pass(20_000);
      expect(surprises(), `history ${String(seed)}: ${life.id} is stopped`).toEqual([]);
    }
    const lives = (world.current()?.lives ?? []).map((life) => powered(life, 'running'));
    const { surprises } = foretell(world, lives);
    for (const { kind, id, spec } of lives) if (kind === 'present') scene.declare(id, spec);
    await scene.pass(20_000);
    expect(surprises(), `history ${String(seed)}: all are started`).toEqual([]);
  }
  await world.kill();
}

describe('a plan in the middle of anything', () => {
  it.each(ranges)(
    `ends, changes nothing, and comes true once faults end: ${String(AT_ONCE)} histories from %i`,
    async (first) => {
      for (let seed = first; seed < first + AT_ONCE; seed++) await checkHistory(seed);
    },
  );
});
