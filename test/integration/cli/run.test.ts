/** What a running agent shows: lines for a person at a terminal, JSON for everything else. Needs QEMU, boots no guest. */
import { join } from 'node:path';
import { spawn as spawnTerminal } from 'node-pty';
import { expect, it, onTestFinished } from 'vitest';
import { AGENT_ROOT, runCli, startAgent } from '../../support/cli.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

async function agentFlags(): Promise<{ readonly flags: string[]; readonly runDir: string }> {
  const folder = tempFolder();
  const runDir = join(folder, 'run');
  expect((await runCli(['local', 'init', join(folder, 'vms')])).code).toBe(0);
  const flags = ['--local', join(folder, 'vms'), '--guest-network', 'user', '--backend', 'qemu'];
  return { runDir, flags: [...flags, '--state-dir', join(folder, 'state'), '--run-dir', runDir] };
}

it('an agent at a terminal prints lines, no JSON, and ends by Ctrl-C with its sockets gone', async () => {
  const { flags, runDir } = await agentFlags();
  const pty = spawnTerminal(process.execPath, [`${AGENT_ROOT}/bin/run.js`, 'run', ...flags], {
    cols: 100,
    rows: 24,
    env: { PATH: process.env['PATH'], HOME: tempFolder(), EITRI_BOOTSTRAP_URL: '' },
  });
  let seen = '';
  let code: number | undefined;
  pty.onData((data) => (seen += data));
  pty.onExit(({ exitCode }) => (code = exitCode));
  onTestFinished(() => {
    if (code === undefined) pty.kill('SIGKILL');
  });
  await until(() => /^\d\d:\d\d:\d\d agent {8}agent on .*, backend qemu/m.test(seen));
  expect(seen).not.toContain('{"level"');
  pty.write('\u0003');
  await until(() => code !== undefined);
  expect(code).toBe(0);
  expect((await runCli(['status', '--run-dir', runDir])).code).toBe(69);
});

it('an agent elsewhere logs JSON to standard error, and ends by SIGTERM', async () => {
  const { flags } = await agentFlags();
  const { child, stop } = startAgent(flags);
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString('utf8')));
  await until(() => err.includes('"event":"agent.started"'));
  expect(await stop()).toBe(0);
  expect(out).toBe('');
  for (const line of err.trimEnd().split('\n')) expect(Object.keys(JSON.parse(line) as object)).toContain('event');
});
