/**
 * npm run bench -- [NAME…] [--rounds N] [--machines N] [--json]: runs benchmarks, and exits 0 only if each goal holds.
 */
import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { converge } from './converge.js';
import { measure, MIN_ROUNDS } from './harness.js';
import type { Benchmark, Result } from './harness.js';
import { idle } from './idle.js';
import { PACKAGES } from './needs.js';
import { recover } from './recover.js';
import { tick } from './tick.js';

const BENCHMARKS: readonly Benchmark[] = [tick, converge, recover, idle];
const EXIT = { ok: 0, missed: 1, usage: 64, unfit: 78 } as const;
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    machines: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function usage(): string {
  return [
    'npm run bench -- [NAME…] [--rounds N] [--machines N] [--json]',
    '',
    ...BENCHMARKS.map(({ name, about }) => `  ${name.padEnd(10)}${about}`),
    '',
    `Each is measured beside its peers, in turns there and back, over N rounds: at least ${MIN_ROUNDS}, or 2 where`,
    'a turn takes a minute. The goals are set for the default number of machines; fewer are for a first look.',
    'With --json the last line of each is one JSON object. Exit code: 0 when every goal holds, 1 when one does',
    'not, 64 for a name or a number that is none, 78 on a machine that is not fit.',
    '',
    'Those of machines need root and a build (npm run build), and on Debian the packages that are missing of:',
    `  apt-get install --no-install-recommends ${PACKAGES.join(' ')}`,
    'No service of theirs need run: libvirtd is started by the benchmark, with files and a network of its own.',
  ].join('\n');
}

function table({ name, load, rounds, rows }: Result): string {
  const lines = rows.map(
    (row) =>
      `  ${row.ok ? 'ok ' : 'NOT'} ${row.id}: ours ${row.ours}${row.peer === null ? '' : `, peer ${row.peer}`} ${row.unit}` +
      `${row.floor === null ? '' : `, floor ${row.floor}`}${row.ratio === null ? '' : `; ratio ${row.ratio}`}; goal: ${row.goal}`,
  );
  return [`${name} (${rounds} rounds, load ${load.join(' to ')})`, ...lines].join('\n');
}

const isCount = (text: string | undefined): boolean => text === undefined || /^[1-9]\d{0,3}$/.test(text);
const countOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text));

async function main(): Promise<number> {
  const chosen = positionals.map((name) => BENCHMARKS.find((one) => one.name === name));
  if (values.help) {
    process.stdout.write(`${usage()}\n`);
    return EXIT.ok;
  }
  if (!isCount(values.rounds) || !isCount(values.machines) || chosen.includes(undefined)) {
    process.stderr.write(`${usage()}\n`);
    return EXIT.usage;
  }
  const benchmarks = positionals.length === 0 ? BENCHMARKS : chosen.filter((one) => one !== undefined);
  const lacks = [...new Set(benchmarks.flatMap((benchmark) => benchmark.lacks?.() ?? []))];
  if (lacks.length > 0) {
    process.stderr.write(
      `bench: this machine is not fit for it (--help says what to install):\n  ${lacks.join('\n  ')}\n`,
    );
    return EXIT.unfit;
  }
  const interruption = new AbortController();
  let interrupted: number | undefined;
  for (const [name, code] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      interrupted = code;
      interruption.abort(new Error(`interrupted by ${name}: removing what was made`));
    });
  }
  let ok = true;
  const wishes = {
    rounds: countOf(values.rounds),
    machines: countOf(values.machines),
    say: (line: string) => void process.stderr.write(`${line}\n`),
    signal: interruption.signal,
  };
  for (const benchmark of benchmarks) {
    try {
      const result = await measure(benchmark, wishes);
      process.stdout.write(`${values.json ? JSON.stringify(result) : table(result)}\n`);
      ok &&= result.rows.every((row) => row.ok);
    } catch (error) {
      if (!interruption.signal.aborted) throw error;
      return interrupted ?? EXIT.missed;
    }
  }
  return ok ? EXIT.ok : EXIT.missed;
}

const code = await main();
process.exitCode = process.exitCode === undefined || code !== EXIT.ok ? code : process.exitCode;
