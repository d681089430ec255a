/**
 * Plays histories, and makes one that fails as short as it can be while it still fails.
 */
import { basename } from 'node:path';
import { errorLine } from '@eitri/core/kit';
import { isTempName } from '../../../src/host/atomic-file.js';
import { unsettled } from './end.js';
import { Scene } from './scene.js';
import { historyOf, NAMES } from './steps.js';
import type { History } from './steps.js';

/** Within it every VM is where it is wanted, once nothing goes wrong any more. */
const CONVERGES_MS = 240_000;
const SETTLES_MS = 12_000;
const QUIET_MS = 30_000;
const MAX_SHRINK_RUNS = 150;

/** Plays one history; answers its trace. Rejects at what it finds wrong. */
export async function play(history: History): Promise<string> {
  const scene = new Scene(history);
  await scene.start();
  for (const step of history.steps) await scene.play(step);
  await scene.calm();
  await converge(scene);
  await rest(scene);
  await startAgain(scene);
  const trace = scene.trace();
  await scene.world.kill();
  return trace;
}

async function converge(scene: Scene): Promise<void> {
  const { world } = scene;
  const touched = new Map<string, number>();
  for (let passed = 0; ; passed += 5_000) {
    const troubles = scene.resync() ? ['declared again'] : unsettled(scene);
    if (troubles.length === 0) return;
    if (passed > CONVERGES_MS) throw new Error(`not as wanted in the end: ${troubles.join('; ')}`);
    // What was given up must be taken up when its declaration changes, and go well now; after an earlier life of its name
    // has let go of its volumes, which takes a grace.
    for (const name of NAMES) {
      const status = world.status(name);
      const times = touched.get(name) ?? 0;
      if (status?.phase !== 'Failed' || times > (status.message?.includes('is used by') === true ? 20 : 0)) continue;
      touched.set(name, times + 1);
      scene.touch(name);
    }
    await scene.pass(5_000);
  }
}

/** While nothing happens the report stays the same, byte by byte. */
async function rest(scene: Scene): Promise<void> {
  const { engine } = scene.world.agent ?? {};
  if (engine === undefined) throw new Error('there is no agent in the end');
  // A step that failed just before faults ended is tried again at the next tick.
  await scene.pass(SETTLES_MS);
  const before = JSON.stringify(engine.report());
  const ids = engine.report().vms.map(({ id, uid }) => `${id} ${uid}`);
  if (ids.join() !== [...ids].sort().join()) throw new Error(`the report is not sorted: ${ids.join()}`);
  await scene.pass(QUIET_MS);
  const after = JSON.stringify(engine.report());
  const troubles = unsettled(scene);
  if (troubles.length > 0) throw new Error(`not as wanted any more: ${troubles.join('; ')}`);
  const planned = engine.plan().filter(({ steps }) => steps.length > 0);
  if (planned.length > 0) throw new Error(`nothing is left to do, and planned is ${JSON.stringify(planned)}`);
  if (after !== before) throw new Error(`the report changes while nothing happens: ${before} became ${after}`);
}

/** Another agent finds all as it is, and leaves it so; and what interrupted writes left is gone. */
async function startAgain(scene: Scene): Promise<void> {
  const { world } = scene;
  const pids = (): string => JSON.stringify(world.host.vmms().map(({ uid, pid }) => [uid, pid]));
  const before = pids();
  await scene.restart();
  await scene.pass(SETTLES_MS);
  const troubles = scene.resync() ? ['what was accepted is forgotten'] : unsettled(scene, true);
  if (troubles.length > 0) throw new Error(`not as wanted after another start: ${troubles.join('; ')}`);
  if (pids() !== before) throw new Error(`a start of the agent moved its guests: ${before} became ${pids()}`);
  const litter = world.files.below('/').filter((path) => isTempName(basename(path)));
  if (litter.length > 0) throw new Error(`interrupted writes left ${litter.join()}`);
}

/** Plays a run of seeds. Rejects at the first that fails, with its shortest form and how to play it again. */
export async function checkHistories(firstSeed: number, count: number): Promise<void> {
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const { failure } = await tryHistory(seed, true);
    if (failure !== undefined) throw new Error(failure);
  }
}

/** Plays the history of a seed: its trace, or why it failed, with the shortest history that still does. */
export async function tryHistory(
  seed: number,
  shrinks: boolean,
): Promise<{ readonly trace?: string; readonly failure?: string }> {
  const history = historyOf(seed);
  try {
    return { trace: await play(history) };
  } catch (error) {
    const why = errorLine(error);
    if (!shrinks) return { failure: why };
    const { shortest, says } = await shrink(history, why);
    const failure = [
      `history ${String(seed)}: ${says}`,
      `again: npm run sim -- --replay ${String(seed)}`,
      ...shortest.steps.map((step) => `  ${JSON.stringify(step)}`),
      `plane ${shortest.plane}, caps ${JSON.stringify(shortest.caps)}, reserve ${String(shortest.reserveMib)} MiB`,
    ].join('\n');
    return { failure };
  }
}

async function failureOf(history: History): Promise<string | undefined> {
  try {
    await play(history);
    return undefined;
  } catch (error) {
    return errorLine(error);
  }
}

/** Drops steps, and waits between them, one by one, as long as it still fails in some way. */
async function shrink(history: History, why: string): Promise<{ readonly shortest: History; readonly says: string }> {
  let shortest = history;
  let says = why;
  let runs = 0;
  const keep = async (steps: History['steps']): Promise<boolean> => {
    const candidate = { ...shortest, steps };
    runs++;
    const failure = await failureOf(candidate);
    if (failure === undefined) return false;
    shortest = candidate;
    says = failure;
    return true;
  };
  for (let size = Math.ceil(history.steps.length / 2); size >= 1 && runs < MAX_SHRINK_RUNS;) {
    let dropped = false;
    for (let at = 0; at < shortest.steps.length && runs < MAX_SHRINK_RUNS;) {
      if (await keep(shortest.steps.filter((_, index) => index < at || index >= at + size))) dropped = true;
      else at += size;
    }
    if (size === 1 && !dropped) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return { shortest, says };
}
