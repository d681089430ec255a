/**
 * Would the histories notice? Every mutant of the judged rooms plays histories that come to its line, until one of them
 * fails (killed) or all have passed (survived).
 *
 * The histories are a fixed few, chosen so that each line that any of the first ones comes to is come to often. A mutant
 * in a line that none comes to is counted apart: other suites have to hold it. A survivor is either explained in
 * test/sim/survivors.json, by its file, kind, line and replacement, or fails the check.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Pool } from './pool.mjs';

const EXPLAINED = fileURLToPath(new URL('../../test/sim/survivors.json', import.meta.url));
const REPORT = fileURLToPath(new URL('../../.cache/sim/self-check.json', import.meta.url));
const CANDIDATES = 400;
const CHOSEN = 150;
/** So often each line is come to by the chosen, where the candidates allow it. */
const DEPTH = 15;
const MUTANT_LIMIT_MS = 60_000;
/** As often as the line is passed in an honest history, and much oftener: a loop of the mutant's making. */
const HIT_FACTOR = 200;
const TELL_MS = 15_000;

/** Which mutants each seed comes to, and how often. */
async function coverage(pool) {
  const hits = new Map();
  const atLoad = new Set();
  const seeds = Array.from({ length: CANDIDATES }, (_, at) => at + 1);
  const batches = Array.from({ length: CANDIDATES / 20 }, (_, at) => seeds.slice(at * 20, at * 20 + 20));
  await pool.each(batches, async (run, batch) => {
    const { results, covered, ended } = await run({ seeds: batch, cover: true }, 10 * MUTANT_LIMIT_MS);
    const failed = results.find(({ failure }) => failure !== undefined);
    if (ended !== undefined || failed !== undefined) throw new Error(`without any mutant: ${ended ?? failed.failure}`);
    for (const one of covered) {
      hits.set(one.seed, new Map(Object.entries(one.hits)));
      for (const id of one.atLoad) atLoad.add(id);
    }
  });
  return { hits, atLoad };
}

/** The seeds that together come to everything DEPTH times, as few as may be. */
function choose(hits) {
  const depth = new Map();
  const left = new Set([...hits.keys()].sort((a, b) => a - b));
  const chosen = [];
  while (chosen.length < CHOSEN && left.size > 0) {
    let best;
    for (const seed of left) {
      let gain = 0;
      for (const id of hits.get(seed).keys()) gain += 1 / (1 + (depth.get(id) ?? 0)) ** 2;
      if (best === undefined || gain > best.gain) best = { seed, gain };
    }
    chosen.push(best.seed);
    left.delete(best.seed);
    for (const id of hits.get(best.seed).keys()) depth.set(id, Math.min(DEPTH, (depth.get(id) ?? 0) + 1));
  }
  return chosen;
}

const keyOf = ({ file, kind, text, original, replacement }) => [file, kind, text, original, replacement].join('\n');

/** Answers how many survivors nobody has explained. */
export async function selfCheck({ path, mutants }, { workers, nth, each, only, seeds: most }) {
  const pool = new Pool(path, workers);
  const began = performance.now();
  const took = () => `${((performance.now() - began) / 1000).toFixed(0)} s`;
  try {
    const { hits, atLoad } = await coverage(pool);
    const chosen = choose(hits);
    console.log(`${mutants.size} mutants; ${chosen.length} histories chosen of ${CANDIDATES} (${took()})`);
    const asked = [...mutants].filter(([, { file }], at) => at % each === nth - 1 && file.includes(only));
    const reached = [];
    let unreached = 0;
    for (const [id, mutant] of asked) {
      // The rarest pass first: a history that comes to the line often is mostly a long one.
      const own = chosen.filter((seed) => hits.get(seed).has(id)).slice(0, most);
      const onlyAtLoad = own.length === 0 && atLoad.has(id);
      if (own.length === 0 && !onlyAtLoad) {
        unreached++;
        continue;
      }
      const hitLimit = onlyAtLoad
        ? undefined
        : HIT_FACTOR * Math.max(1000, ...own.map((seed) => hits.get(seed).get(id)));
      reached.push({ id, mutant, fresh: onlyAtLoad, seeds: onlyAtLoad ? chosen.slice(0, most) : own, hitLimit });
    }
    const killed = [];
    const survived = [];
    let told = performance.now();
    await pool.each(reached, async (run, { id, mutant, fresh, seeds, hitLimit }) => {
      const { results, ended } = await run({ seeds, mutant: id, fresh, hitLimit }, MUTANT_LIMIT_MS);
      const failed = results.find(({ failure }) => failure !== undefined);
      const by = ended ?? failed?.failure;
      if (by === undefined) survived.push({ id, ...mutant });
      else killed.push({ id, ...mutant, by });
      if (performance.now() - told < TELL_MS) return;
      told = performance.now();
      console.log(
        `${killed.length + survived.length} of ${reached.length}: ${killed.length} killed, ${survived.length} survived (${took()})`,
      );
    });
    return report({ asked, unreached, killed, survived, took: took() });
  } finally {
    await pool.close();
  }
}

function report({ asked, unreached, killed, survived, took }) {
  const explained = new Map(JSON.parse(readFileSync(EXPLAINED, 'utf8')).map((one) => [keyOf(one), one.why]));
  const open = survived.filter((mutant) => !explained.has(keyOf(mutant)));
  writeFileSync(REPORT, `${JSON.stringify({ killed, survived, open }, undefined, 1)}\n`);
  const byFile = new Map();
  for (const [list, column] of [
    [killed, 0],
    [survived, 1],
    [open, 2],
  ]) {
    for (const { file } of list) {
      const row = byFile.get(file) ?? [0, 0, 0];
      row[column]++;
      byFile.set(file, row);
    }
  }
  console.log('\nkilled  survived  unexplained');
  for (const [file, [k, s, o]] of [...byFile].sort()) {
    console.log(`${String(k).padStart(6)}  ${String(s).padStart(8)}  ${String(o).padStart(11)}  ${file}`);
  }
  const shown = open.sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
  for (const { file, line, kind, original, replacement } of shown) {
    const short = (text) => (text.length > 70 ? `${text.slice(0, 67)}…` : text).replaceAll('\n', ' ');
    console.log(`survived ${file}:${line} ${kind}: ${short(original)} → ${short(replacement)}`);
  }
  const ran = killed.length + survived.length;
  const percent = (part) => ((100 * part) / Math.max(1, ran)).toFixed(1);
  console.log(`\n${asked.length} mutants, ${unreached} in lines that no history comes to, ${ran} run in ${took}`);
  console.log(
    `${killed.length} killed (${percent(killed.length)} %), ${survived.length} survived, ${open.length} of them unexplained`,
  );
  console.log(`${REPORT} has all of them`);
  return open.length;
}
