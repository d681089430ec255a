import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { errorLine, isPermanent } from '@eitri/core/kit';
import { ExecaRunner } from '../../../src/host/runner.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const never = new AbortController().signal;
const runner = new ExecaRunner();
const sh = (script: string) => ({ command: 'sh', args: ['-c', script] });
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    // A container's first process may not reap: a zombie is gone.
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z');
  } catch {
    return false;
  }
};

describe('a program that is run', () => {
  it('gives its output byte for byte, with its last line break', async () => {
    expect(await runner.run(sh('echo out; echo err >&2'), never)).toEqual({
      exitCode: 0,
      stdout: 'out\n',
      stderr: 'err\n',
    });
  });

  it('sees its arguments as they are, never a shell', async () => {
    const result = await runner.run({ command: 'printf', args: ['%s|', '$HOME', 'a b', '`id`', ''] }, never);
    expect(result.stdout).toBe('$HOME|a b|`id`||');
  });

  it('reads what it is given, and the end of input where it is given nothing', async () => {
    expect((await runner.run({ command: 'cat', args: [], input: 'hello' }, never)).stdout).toBe('hello');
    expect((await runner.run({ command: 'cat', args: [] }, never)).stdout).toBe('');
  });

  it('that does not read its input does not fail for it', async () => {
    expect((await runner.run({ ...sh('exit 0'), input: 'x'.repeat(2 ** 20) }, never)).exitCode).toBe(0);
  });

  it('speaks English, and sees the variables added for it', async () => {
    const result = await runner.run({ ...sh('echo $LC_ALL $EXTRA'), env: { EXTRA: 'yes' } }, never);
    expect(result.stdout).toBe('C yes\n');
  });

  it('that fails rejects with the command, the code and the last line of its errors, worth a retry', async () => {
    const error = await failureOf(runner.run(sh('echo first >&2; echo reason >&2; exit 3'), never));
    expect(errorLine(error)).toBe('run sh: exit code 3: reason');
    expect(isPermanent(error)).toBe(false);
  });

  it('whose code is expected resolves with it', async () => {
    expect((await runner.run({ ...sh('exit 3'), okCodes: [0, 3] }, never)).exitCode).toBe(3);
  });

  it('that is not there is a permanent error that names it, also as a path', async () => {
    for (const command of ['eitri-no-such-tool', '/no/such/tool']) {
      const error = await failureOf(runner.run({ command, args: [] }, never));
      expect(isPermanent(error)).toBe(true);
      expect(errorLine(error)).toContain(command);
    }
  });

  it('that may not be executed is a permanent error', async () => {
    const file = join(tempFolder(), 'plain');
    writeFileSync(file, 'text');
    const error = await failureOf(runner.run({ command: file, args: [] }, never));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain('may not be executed');
  });
});

describe('bounds', () => {
  it('more than 64 KiB of errors keep their end, and do not stop the program', async () => {
    const result = await runner.run(sh('yes 0123456789 | head -c 300000 >&2; echo end >&2'), never);
    expect(Buffer.byteLength(result.stderr)).toBeLessThanOrEqual(64 * 1024);
    expect(result.stderr.endsWith('end\n')).toBe(true);
  });

  it('more than 16 MiB of output is an error, never a part of it', async () => {
    const error = await failureOf(runner.run(sh('head -c 17000000 /dev/zero'), never));
    expect(errorLine(error)).toContain('more than 16 MiB');
  });

  it('the time over, the program and what it started are ended, even if they ignore the asking', async () => {
    const file = join(tempFolder(), 'pids');
    const script = `trap "" TERM; sleep 600 & echo $$ $! > ${file}; wait; sleep 600`;
    const error = await failureOf(runner.run({ ...sh(script), timeoutMs: 400 }, never));
    expect(errorLine(error)).toContain('run sh: not done within 0.4 s');
    const pids = readFileSync(file, 'utf8').trim().split(' ').map(Number);
    await until(() => !pids.some(exists));
  });

  it('a caller that gives up ends it, and finds its reason in the chain', async () => {
    const controller = new AbortController();
    const running = failureOf(runner.run(sh('sleep 600'), controller.signal));
    controller.abort(new Error('shutting down'));
    expect(errorLine(await running)).toBe('run sh: given up by its caller: shutting down');
    const late = failureOf(runner.run(sh('exit 0'), controller.signal));
    expect(errorLine(await late)).toContain('given up before it began');
  });

  it('a child left behind with the output open does not hold up the caller, and lives on', async () => {
    const result = await runner.run({ ...sh('sleep 600 & echo $!'), timeoutMs: 20_000 }, never);
    const pid = Number(result.stdout);
    expect(exists(pid)).toBe(true);
    process.kill(pid, 'SIGKILL');
  });
});

describe('which', () => {
  it('finds a bare name on PATH as an absolute path, and only what may be executed', async () => {
    expect(await runner.which('sh')).toMatch(/^\/.*\/sh$/);
    expect(await runner.which('eitri-no-such-tool')).toBeUndefined();
    expect(await runner.which('')).toBeUndefined();
    const file = join(tempFolder(), 'tool');
    writeFileSync(file, '#!/bin/sh\n');
    expect(await runner.which(file)).toBeUndefined();
    chmodSync(file, 0o755);
    expect(await runner.which(file)).toBe(file);
  });

  it('does not take a folder for a program', async () => {
    expect(await runner.which(tempFolder())).toBeUndefined();
  });
});
