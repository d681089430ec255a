import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isAlive } from '../../support/processes.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const path = (relative: string): string => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));

interface Started {
  readonly pids: readonly number[];
  readonly folder: string;
}

/** A run of its own, not a part of this one. */
function startRun(folder: string, ...words: readonly string[]) {
  const temp = join(folder, 't');
  mkdirSync(temp, { recursive: true });
  const told = join(folder, 'told');
  const args = [
    path('node_modules/vitest/vitest.mjs'),
    ...['run', '--config', path('test/fixtures/run/vitest.config.ts'), ...words],
  ];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, EITRI_TEST_RUN_FOLDER: undefined, TMPDIR: temp, ENDLESS_PIDS: told },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  return {
    temp,
    child,
    ended: once(child, 'close'),
    printed: () => out,
    /** In the middle: a test has started what does not end. */
    middle: async (): Promise<Started> => {
      const started = await until(() => JSON.parse(readFileSync(told, 'utf8')) as Started, { timeoutMs: 60_000 });
      onTestFinished(() => {
        for (const pid of started.pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
      });
      expect(started.folder.startsWith(temp)).toBe(true);
      expect(started.pids.map(isAlive)).toEqual([true, true]);
      return started;
    },
  };
}

describe('a run of tests that is interrupted in the middle', () => {
  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)(
    '%s: no process and no file of it is left, and it counts what ran and one failed',
    async (signal, code) => {
      const run = startRun(tempFolder());
      const started = await run.middle();
      await until(() => run.printed().includes('heard of one'));
      run.child.kill(signal);

      expect((await run.ended)[0]).toBe(code);
      expect(started.pids.map(isAlive)).toEqual([false, false]);
      expect([existsSync(started.folder), readdirSync(run.temp)]).toEqual([false, []]);
      expect(run.printed().trimEnd().split('\n').at(-1)).toBe('1 passed, 1 failed');
    },
  );

  it('SIGKILL: the next run ends and removes what is left, and nothing of a run that is still at work', async () => {
    const folder = tempFolder();
    const killed = startRun(folder);
    const left = await killed.middle();
    killed.child.kill('SIGKILL');
    await killed.ended;
    const atWork = startRun(folder);
    const kept = await until(async () => {
      const now = await atWork.middle();
      return now.folder === left.folder ? undefined : now;
    });
    expect(left.pids.map(isAlive)).toEqual([false, false]);
    expect(existsSync(left.folder)).toBe(false);

    const next = startRun(folder, '-t', 'passes');
    expect((await next.ended)[0]).toBe(0);
    expect(kept.pids.map(isAlive)).toEqual([true, true]);
    atWork.child.kill('SIGTERM');
    await atWork.ended;
    expect(readdirSync(killed.temp)).toEqual([]);
  });
});
