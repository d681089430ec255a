/**
 * npm run bench -- [NAME…] [--rounds N] [--json]: runs benchmarks, and exits 0 only if each goal holds.
 */
import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { measure, MIN_ROUNDS } from './harness.js';
import type { Benchmark, Result } from './harness.js';
import { tick } from './tick.js';

const BENCHMARKS: readonly Benchmark[] = [tick];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: String(MIN_ROUNDS) },
    help: { type: 'boolean', default: false },
  },
});

function usage(): string {
  return [
    'npm run bench -- [NAME…] [--rounds N] [--json]',
    '',
    ...BENCHMARKS.map(({ name, about }) => `  ${name.padEnd(10)}${about}`),
    '',
    `Each is measured beside a peer, in turns, over N rounds (at least ${MIN_ROUNDS}).`,
    'With --json the last line of each is one JSON object. Exit code: 0 when every',
    'goal holds, 1 when one does not, 64 for a name or a number that is none.',
  ].join('\n');
}

function table({ name, load, rounds, rows }: Result): string {
  const lines = rows.map(
    (row) =>
      `  ${row.ok ? 'ok ' : 'NOT'} ${row.id}: ours ${row.ours}, peer ${row.peer} ${row.unit}` +
      `${row.floor === null ? '' : `, floor ${row.floor}`}; ratio ${row.ratio}; goal: ${row.goal}`,
  );
  return [`${name} (${rounds} rounds, load ${load.join(' to ')})`, ...lines].join('\n');
}

async function main(): Promise<number> {
  const rounds = Number(values.rounds);
  const chosen = positionals.map((name) => BENCHMARKS.find((one) => one.name === name));
  if (values.help) {
    process.stdout.write(`${usage()}\n`);
    return 0;
  }
  if (!Number.isSafeInteger(rounds) || rounds < 1 || chosen.includes(undefined)) {
    process.stderr.write(`${usage()}\n`);
    return 64;
  }
  let ok = true;
  for (const benchmark of positionals.length === 0 ? BENCHMARKS : chosen) {
    if (benchmark === undefined) continue;
    const result = await measure(benchmark, rounds, (line) => process.stderr.write(`${line}\n`));
    process.stdout.write(`${values.json ? JSON.stringify(result) : table(result)}\n`);
    ok &&= result.rows.every((row) => row.ok);
  }
  return ok ? 0 : 1;
}

process.exitCode = await main();
