/**
 * Measures ours beside its peers, in one run, in turns there and back (ours, A, B, B, A, ours), so that what else the
 * machine does meets all of them. Each turn must do equal work with an equal outcome, or the figures mean nothing and it
 * fails.
 *
 * Owns the order, the medians, the verdict, and that what a benchmark made is removed, also when it fails or is
 * interrupted. Never decides what is compared: that is a benchmark's.
 */
import { loadavg } from 'node:os';

/** What one run did: how long it took, and what came of it, to be compared with what came of the others'. */
export interface Measured {
  /** In the comparison's unit; less is better. */
  readonly value: number;
  /** Undefined: it does other work on purpose, as a part of a sum. */
  readonly outcome: string | undefined;
  /** More about this turn, for the line that tells of it. */
  readonly note?: string;
}

export interface Contender {
  readonly name: string;
  readonly run: (signal: AbortSignal) => Promise<Measured>;
}

/**
 * `sum`: ours is at most this many times each of these peers, added up. `figure`: ours is at most this, in the unit.
 * To be N times faster than a peer is to take at most 1 / N times its time.
 */
export type Goal =
  | { readonly of: 'sum'; readonly id: string; readonly times: Readonly<Record<string, number>> }
  | { readonly of: 'figure'; readonly id: string; readonly atMost: number };

export interface Comparison {
  readonly unit: string;
  readonly ours: Contender;
  readonly peers: readonly Contender[];
  /** What no program can be faster than, measured once a round; shown only. */
  readonly floor?: Contender;
  /** A row each. */
  readonly goals: readonly Goal[];
}

/** What a benchmark is prepared with. */
export interface Bench {
  /** How many machines a benchmark of machines takes; only its default is what the goals are set for. */
  readonly machines: number | undefined;
  /** Registers what removes what was just made. In reverse order, each of them, whatever happens. */
  readonly defer: (remove: () => Promise<void> | void) => void;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface Benchmark {
  readonly name: string;
  readonly about: string;
  /** What this machine must have for it, and hasn't; empty: it can be run. Asks only. */
  readonly lacks?: () => readonly string[];
  /** How many rounds its figures rest on at least; absent: `MIN_ROUNDS`. */
  readonly minRounds?: number;
  readonly prepare: (bench: Bench) => Promise<readonly Comparison[]>;
}

export interface Row {
  readonly id: string;
  readonly unit: string;
  readonly ours: number;
  /** What ours is compared with; null: with nothing but its goal. */
  readonly peer: number | null;
  readonly floor: number | null;
  /** ours ÷ peer. */
  readonly ratio: number | null;
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

/** The fewest rounds that a figure may rest on, where a turn takes no minute. */
export const MIN_ROUNDS = 5;

export interface Wishes {
  readonly rounds: number | undefined;
  readonly machines: number | undefined;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

export async function measure(benchmark: Benchmark, { rounds, machines, say, signal }: Wishes): Promise<Result> {
  const before = oneMinuteLoad();
  const least = benchmark.minRounds ?? MIN_ROUNDS;
  const all = Math.max(least, rounds ?? least);
  const removals: (() => Promise<void> | void)[] = [];
  const rows: Row[] = [];
  try {
    const comparisons = await benchmark.prepare({ machines, defer: (remove) => removals.push(remove), say, signal });
    for (const comparison of comparisons) rows.push(...(await compare(comparison, all, say, signal)));
  } finally {
    await removeAll(removals, say);
  }
  return { name: benchmark.name, load: [before, oneMinuteLoad()], rounds: all, rows };
}

/** One that fails keeps no other from being tried, and does not hide why the benchmark failed. */
async function removeAll(
  removals: readonly (() => Promise<void> | void)[],
  say: (line: string) => void,
): Promise<void> {
  for (const remove of removals.toReversed()) {
    try {
      await remove();
    } catch (error) {
      process.exitCode = 1;
      say(`left behind: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

async function compare(
  comparison: Comparison,
  rounds: number,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly Row[]> {
  const { unit, ours, peers, floor, goals } = comparison;
  const what = goals.map(({ id }) => id).join(', ');
  const figures = new Map<Contender, number[]>([ours, ...peers].map((side) => [side, []]));
  const floors: number[] = [];
  const there = [ours, ...peers];
  // One turn each that does not count: caches, the JIT.
  await turns(what, there, () => undefined, signal);
  for (let round = 1; round <= rounds; round++) {
    const told: string[] = [];
    const note = (side: Contender, { value, note }: Measured): void => {
      figures.get(side)?.push(value);
      told.push(`${side.name} ${rounded(value)}${note === undefined ? '' : ` (${note})`}`);
    };
    await turns(what, [...there, ...there.toReversed()], note, signal);
    if (floor !== undefined) floors.push((await floor.run(signal)).value);
    say(`${what}: round ${round} of ${rounds}, load ${oneMinuteLoad()}: ${told.join(', ')} ${unit}`);
  }
  const middle = (side: Contender): number => median(figures.get(side) ?? []);
  return goals.map((goal) => ({
    id: goal.id,
    unit,
    ours: rounded(middle(ours)),
    floor: floors.length === 0 ? null : rounded(median(floors)),
    ...judged(goal, middle(ours), (name) => middle(peerNamed(peers, name))),
  }));
}

type Judged = Pick<Row, 'peer' | 'ratio' | 'goal' | 'ok'>;

/** Pure. */
export function judged(goal: Goal, ours: number, peer: (name: string) => number): Judged {
  if (goal.of === 'figure') return { peer: null, ratio: null, goal: `ours ≤ ${goal.atMost}`, ok: ours <= goal.atMost };
  const terms = Object.entries(goal.times);
  const bound = terms.reduce((sum, [name, times]) => sum + times * peer(name), 0);
  // With one peer its own figure is shown, with several the sum that ours may take.
  const [name = '', times = 1] = terms[0] ?? [];
  const only = terms.length === 1 ? peer(name) : bound;
  const shown =
    terms.length === 1 && times < 1
      ? `${name} ≥ ${rounded(1 / times)} × ours`
      : `ours ≤ ${terms.map(([each, n]) => `${n} × ${each}`).join(' + ')}`;
  return { peer: rounded(only), ratio: rounded(ours / only), goal: shown, ok: ours <= bound };
}

function peerNamed(peers: readonly Contender[], name: string): Contender {
  const peer = peers.find((one) => one.name === name);
  if (peer === undefined) throw new Error(`a goal names the peer ${name}, and there is none`);
  return peer;
}

async function turns(
  what: string,
  order: readonly Contender[],
  note: (side: Contender, measured: Measured) => void,
  signal: AbortSignal,
): Promise<void> {
  let first: { readonly name: string; readonly outcome: string } | undefined;
  for (const side of order) {
    signal.throwIfAborted();
    const measured = await side.run(signal);
    const { outcome } = measured;
    if (outcome !== undefined) first ??= { name: side.name, outcome };
    if (outcome !== undefined && outcome !== first?.outcome) {
      throw new Error(`${what}: ${side.name} came to "${outcome}", ${first?.name ?? ''} to "${first?.outcome ?? ''}"`);
    }
    note(side, measured);
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
