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

describe('a run of tests that is interrupted in the middle', () => {
  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)(
    '%s: no process and no file of it is left, and it counts what ran and one failed',
    async (signal, code) => {
      const folder = tempFolder();
      const temp = join(folder, 't');
      mkdirSync(temp);
      const told = join(folder, 'told');
      const args = [
        path('node_modules/vitest/vitest.mjs'),
        'run',
        '--config',
        path('test/fixtures/run/vitest.config.ts'),
      ];
      const child = spawn(process.execPath, args, {
        // A run of its own, not a part of this one.
        env: { ...process.env, EITRI_TEST_RUN_FOLDER: undefined, TMPDIR: temp, ENDLESS_PIDS: told },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      let out = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
      const ended = once(child, 'close');

      const started = await until(() => JSON.parse(readFileSync(told, 'utf8')) as Started, { timeoutMs: 60_000 });
      onTestFinished(() => {
        for (const pid of started.pids.filter(isAlive)) process.kill(pid, 'SIGKILL');
      });
      await until(() => out.includes('heard of one'));
      expect(started.folder.startsWith(temp)).toBe(true);
      expect(started.pids.map(isAlive)).toEqual([true, true]);
      child.kill(signal);

      expect((await ended)[0]).toBe(code);
      expect(started.pids.map(isAlive)).toEqual([false, false]);
      expect([existsSync(started.folder), readdirSync(temp)]).toEqual([false, []]);
      expect(out.trimEnd().split('\n').at(-1)).toBe('1 passed, 1 failed');
    },
  );
});
