/**
 * SIGUSR1 writes coverage and never opens a debugger, from the first line of any command on. What comes before
 * that line is Node's own start, which no script can guard (bin/sigusr1.js).
 */
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { AGENT_ROOT, runCli, startAgent } from '../../support/cli.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const PROBE = fileURLToPath(new URL('../../fixtures/cli/sigusr1-probe.cjs', import.meta.url));
const EVERY_MS = 10;
/** Writing coverage takes a command longer than ten milliseconds, and it has to do its own work too. */
const EVERY_COVERAGE_MS = 500;

/** A command that is signalled again and again, from the moment it listens until it ends, or `stopSignals`. */
function signalled(args: readonly string[], measured: boolean) {
  const coverage = tempFolder();
  const child = spawn(process.execPath, ['--require', PROBE, `${AGENT_ROOT}/bin/run.js`, ...args], {
    env: { PATH: process.env['PATH'], HOME: tempFolder(), ...(measured && { NODE_V8_COVERAGE: coverage }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let out = '';
  let err = '';
  let timer: NodeJS.Timeout | undefined;
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString('utf8');
    if (err.includes('probe: listens'))
      // eslint-disable-next-line no-restricted-globals -- a signal every few milliseconds is the fault that is tried here
      timer ??= setInterval(() => child.kill('SIGUSR1'), measured ? EVERY_COVERAGE_MS : EVERY_MS);
  });
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      clearInterval(timer);
      resolve(code ?? signal ?? -1);
    });
  });
  const stopSignals = (): void => {
    clearInterval(timer);
  };
  return { child, ended, stopSignals, out: () => out, err: () => err, coverage: () => readdirSync(coverage) };
}

/** A folder for an agent, and the flags for it. */
async function place() {
  const folder = tempFolder();
  const vms = join(folder, 'vms');
  expect((await runCli(['local', 'init', vms])).code).toBe(0);
  const runDir = ['--run-dir', join(folder, 'run')];
  const own = ['--local', vms, '--guest-network', 'user', '--backend', 'qemu', '--state-dir', join(folder, 'state')];
  return { runDir, flags: [...own, ...runDir] };
}

it('a command that ends at once is signalled from its first line on: does its work, and opens no debugger', async () => {
  const { ended, out, err } = signalled(['--version'], false);
  // Node takes its handlers down before its process ends: the last signal may find none.
  expect([0, 'SIGUSR1']).toContain(await ended);
  expect(out()).toMatch(/^@eitri\/agent\//);
  expect(err()).toContain('probe: listens, with 0 modules of packages loaded');
  expect(err()).not.toContain('Debugger listening');
});

it('an agent is signalled from its first line on: writes coverage while it runs, and opens no debugger', async () => {
  const { flags } = await place();
  const { child, ended, err, coverage, stopSignals } = signalled(['run', ...flags], true);
  await until(() => err().includes('"event":"agent.started"'));
  await until(() => coverage().length > 1);
  stopSignals();
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(err()).not.toContain('Debugger listening');
});

it('a command that follows is signalled all the time: goes on, and opens no debugger', async () => {
  const { flags, runDir } = await place();
  startAgent(flags);
  await until(async () => (await runCli(['status', ...runDir])).code === 0);
  const { child, err, out, coverage } = signalled(['vm', 'events', '--follow', ...runDir], true);
  await until(() => out().includes('agent on'));
  await until(() => coverage().length > 1);
  expect(child.exitCode).toBeNull();
  expect(err()).not.toContain('Debugger listening');
});
