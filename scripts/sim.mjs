/**
 * `npm run sim`: random histories of a host, played as fast as this machine can; and with `--self-check` whether they would
 * notice if the agent were wrong. Owns the command line and what is printed; the histories are test/support/history.
 */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { bundle } from './sim/bundle.mjs';
import { Pool } from './sim/pool.mjs';
import { selfCheck } from './sim/self-check.mjs';

const EXIT = { failed: 1, usage: 64 };
const BATCH = 20;
/** One history takes a tenth of a second; this is a loop that never ends. */
const BATCH_LIMIT_MS = 600_000;

const HELP = `npm run sim -- [--histories N] [--seed S] [--workers W]
npm run sim -- --replay S
npm run sim -- --self-check [--workers W] [--of N/M] [--only PATH] [--seeds N]

Plays random histories of a host: the real engine, state store and desired store over a simulated file system, clock,
process table, backend and network. The same arguments give the same hash, on any machine and under any load.

  --histories N   how many (default 1000)
  --seed S        the first one's seed (default 1); the others follow
  --replay S      plays one history and prints its steps; one that fails is shrunk first
  --workers W     threads (default 2)
  --self-check    makes mutants of reconcile, state and desired, and tells which of them the histories kill
  --of N/M        only every M-th mutant, from the N-th
  --only PATH     only mutants in files whose path contains this
  --seeds N       how many histories each mutant may have to survive (default 40 of a chosen 150)

Exit codes: 0 all passed; 1 a history failed, or a mutant survived that test/sim/survivors.json does not explain;
64 the arguments can't be understood.`;

function options() {
  try {
    const { values } = parseArgs({
      options: {
        histories: { type: 'string', default: '1000' },
        seed: { type: 'string', default: '1' },
        replay: { type: 'string' },
        workers: { type: 'string', default: '2' },
        'self-check': { type: 'boolean', default: false },
        of: { type: 'string', default: '1/1' },
        only: { type: 'string', default: '' },
        seeds: { type: 'string', default: '40' },
        help: { type: 'boolean', default: false },
      },
    });
    const number = (name, least) => {
      const value = Number(values[name]);
      if (!Number.isInteger(value) || value < least)
        throw new Error(`--${name} ${values[name]}: not a number from ${least}`);
      return value;
    };
    const [nth, each] = values.of.split('/').map(Number);
    if (!(nth >= 1 && each >= nth)) throw new Error(`--of ${values.of}: not N/M with N from 1 to M`);
    return {
      ...{ help: values.help, selfCheck: values['self-check'], only: values.only, nth, each },
      histories: number('histories', 1),
      seed: number('seed', 0),
      workers: number('workers', 1),
      seeds: number('seeds', 1),
      replay: values.replay === undefined ? undefined : number('replay', 0),
    };
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(EXIT.usage);
  }
}

/** Plays a run of seeds; answers how many failed. */
async function playAll(pool, { seed: first, histories }) {
  const traces = new Map();
  const failures = [];
  const fails = (seed, failure) => {
    failures.push(seed);
    console.log(`\n${failure}\n`);
  };
  const began = performance.now();
  let told = began;
  const batches = Array.from({ length: Math.ceil(histories / BATCH) }, (_, at) => ({
    first: first + at * BATCH,
    count: Math.min(BATCH, histories - at * BATCH),
  }));
  const rate = () => ((traces.size + failures.length) / (performance.now() - began)) * 1000;
  await pool.each(batches, async (run, { first: from, count }) => {
    const seeds = Array.from({ length: count }, (_, at) => from + at);
    const { results, ended } = await run({ seeds, shrink: true }, BATCH_LIMIT_MS);
    for (const { seed, trace, failure } of results) {
      if (failure === undefined) traces.set(seed, trace);
      else fails(seed, failure);
    }
    const lost = seeds[results.length];
    if (ended !== undefined && lost !== undefined) fails(lost, `history ${lost}: ${ended}`);
    if (performance.now() - told < 5_000) return;
    told = performance.now();
    console.log(
      `${traces.size + failures.length} of ${histories}, ${rate().toFixed(1)} a second, ${failures.length} failed`,
    );
  });
  const hash = createHash('sha256');
  for (const [seed, trace] of [...traces].sort(([a], [b]) => a - b)) hash.update(`${seed} ${trace}\n`);
  console.log(`\n${rate().toFixed(1)} histories a second, in ${((performance.now() - began) / 1000).toFixed(0)} s`);
  console.log(`hash of all traces: ${hash.digest('hex')}`);
  console.log(`${traces.size} passed, ${histories - traces.size} failed`);
  return histories - traces.size;
}

async function replay(path, seed) {
  const { historyOf, tryHistory } = await import(path);
  const { steps, ...facts } = historyOf(seed);
  console.log(JSON.stringify(facts));
  for (const step of steps) console.log(`  ${JSON.stringify(step)}`);
  const { trace, failure } = await tryHistory(seed, true);
  console.log(failure === undefined ? `trace ${trace}` : `\n${failure}`);
  console.log(failure === undefined ? '1 passed, 0 failed' : '0 passed, 1 failed');
  return failure === undefined ? 0 : 1;
}

const asked = options();
if (asked.help) {
  console.log(HELP);
  process.exit(0);
}
const built = await bundle({ mutate: asked.selfCheck });
let failed;
try {
  if (asked.replay !== undefined) failed = await replay(built.path, asked.replay);
  else if (asked.selfCheck) failed = await selfCheck(built, asked);
  else {
    const pool = new Pool(built.path, asked.workers);
    try {
      failed = await playAll(pool, asked);
    } finally {
      await pool.close();
    }
  }
} finally {
  rmSync(built.folder, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : EXIT.failed);
