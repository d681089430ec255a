/**
 * Measures ours beside a peer, in one run, in turns (ours, peer, peer, ours), so that what else the machine does meets
 * both. Each round must do equal work with equal outcomes on both sides, or its figures mean nothing and it fails.
 *
 * Owns the order, the medians and the verdict. Never decides what is compared: that is a benchmark's.
 */
import { loadavg } from 'node:os';

/** What one run did: how long it took, and what came of it, to be compared with what came of the other side's. */
export interface Measured {
  /** In the row's unit; less is better. */
  readonly value: number;
  readonly outcome: string;
}

export interface Contender {
  readonly name: string;
  readonly run: () => Promise<Measured>;
}

/** `peer`: a bound on ours ÷ peer. `ours`: a bound on the figure itself, in the row's unit. */
export interface Goal {
  readonly of: 'ratio' | 'ours';
  readonly atMost: number;
}

export interface Comparison {
  readonly id: string;
  readonly unit: string;
  readonly ours: Contender;
  readonly peer: Contender;
  /** What no program can be faster than, measured once a round; shown only. */
  readonly floor?: Contender;
  readonly goal: Goal;
}

export interface Benchmark {
  readonly name: string;
  readonly about: string;
  /** Makes what is compared, and the removal of all of it. */
  readonly prepare: () => Promise<{
    readonly comparisons: readonly Comparison[];
    readonly dispose: () => Promise<void>;
  }>;
}

export interface Row {
  readonly id: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: number;
  readonly floor: number | null;
  readonly ratio: number;
  readonly goal: string;
  readonly ok: boolean;
}

export interface Result {
  readonly name: string;
  /** The machine's load average (one minute) before and after. */
  readonly load: readonly [number, number];
  readonly rounds: number;
  readonly rows: readonly Row[];
}

/** The fewest rounds that a figure may rest on. */
export const MIN_ROUNDS = 5;

export async function measure(benchmark: Benchmark, rounds: number, say: (line: string) => void): Promise<Result> {
  const before = oneMinuteLoad();
  const { comparisons, dispose } = await benchmark.prepare();
  const rows: Row[] = [];
  try {
    for (const comparison of comparisons) rows.push(await compare(comparison, Math.max(MIN_ROUNDS, rounds), say));
  } finally {
    await dispose();
  }
  return { name: benchmark.name, load: [before, oneMinuteLoad()], rounds: Math.max(MIN_ROUNDS, rounds), rows };
}

async function compare(comparison: Comparison, rounds: number, say: (line: string) => void): Promise<Row> {
  const { id, unit, ours, peer, floor, goal } = comparison;
  const figures = { ours: [] as number[], peer: [] as number[], floor: [] as number[] };
  // One turn each that does not count: caches, the JIT.
  await turn(comparison, [ours, peer], () => undefined);
  for (let round = 1; round <= rounds; round++) {
    await turn(comparison, [ours, peer, peer, ours], (side, value) =>
      figures[side === ours ? 'ours' : 'peer'].push(value),
    );
    if (floor !== undefined) figures.floor.push((await floor.run()).value);
    const last = `${ours.name} ${shown(figures.ours.at(-1))}, ${peer.name} ${shown(figures.peer.at(-1))} ${unit}`;
    say(`${id}: round ${round} of ${rounds}: ${last}`);
  }
  const middle = { ours: median(figures.ours), peer: median(figures.peer) };
  const ratio = middle.ours / middle.peer;
  const judged = goal.of === 'ratio' ? ratio : middle.ours;
  return {
    id,
    unit,
    ours: rounded(middle.ours),
    peer: rounded(middle.peer),
    floor: figures.floor.length === 0 ? null : rounded(median(figures.floor)),
    ratio: rounded(ratio),
    goal: `${goal.of === 'ratio' ? 'ours ÷ peer' : 'ours'} ≤ ${goal.atMost}`,
    ok: judged <= goal.atMost,
  };
}

async function turn(
  { id }: Comparison,
  order: readonly Contender[],
  note: (side: Contender, value: number) => void,
): Promise<void> {
  let first: Measured | undefined;
  for (const side of order) {
    const measured = await side.run();
    first ??= measured;
    if (measured.outcome !== first.outcome) {
      throw new Error(`${id}: ${side.name} came to "${measured.outcome}", the other side to "${first.outcome}"`);
    }
    note(side, measured.value);
  }
}

const oneMinuteLoad = (): number => rounded(loadavg()[0] ?? 0);

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(at) - 1] ?? 0, sorted[Math.floor(at)] ?? 0];
  return (low + high) / 2;
}

const rounded = (value: number): number => Number(value.toPrecision(4));
const shown = (value: number | undefined): string => (value === undefined ? '–' : String(rounded(value)));
