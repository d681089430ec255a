/** What a running agent shows: lines for a person at a terminal, JSON for everything else. Needs QEMU, boots no guest. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn as spawnTerminal } from 'node-pty';
import { expect, it, onTestFinished } from 'vitest';
import { AGENT_ROOT, runCli, startAgent } from '../../support/cli.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

async function agentFlags(): Promise<{ readonly flags: string[]; readonly runDir: string; readonly vms: string }> {
  const folder = tempFolder();
  const runDir = join(folder, 'run');
  expect((await runCli(['local', 'init', join(folder, 'vms')])).code).toBe(0);
  const flags = ['--local', join(folder, 'vms'), '--guest-network', 'user', '--backend', 'qemu'];
  return {
    runDir,
    vms: join(folder, 'vms'),
    flags: [...flags, '--state-dir', join(folder, 'state'), '--run-dir', runDir],
  };
}

/** An agent at a terminal of its own, once it has started. */
async function terminalAgent(flags: readonly string[]) {
  const pty = spawnTerminal(process.execPath, [`${AGENT_ROOT}/bin/run.js`, 'run', ...flags], {
    // Wide, so that no line of interest breaks.
    cols: 400,
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
  return { pty, seen: () => seen, code: () => code };
}

it('an agent at a terminal prints lines, no JSON, and ends by Ctrl-C with its sockets gone', async () => {
  const { flags, runDir } = await agentFlags();
  const { seen, pty, code } = await terminalAgent(flags);
  expect(seen()).not.toContain('{"level"');
  pty.write('\u0003');
  await until(() => code() !== undefined);
  expect(code()).toBe(0);
  expect((await runCli(['status', '--run-dir', runDir])).code).toBe(69);
});

it('an agent at a terminal tells of a broken document, of contact that is lost and found, and of VMs that vanish at once', async () => {
  const { flags, runDir, vms } = await agentFlags();
  const document = (name: string, more = ''): string =>
    `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: ${name}}\nspec:\n  image: {url: "file:///nowhere.raw", format: raw}\n${more}`;
  const names = ['a', 'b', 'c'];
  for (const name of names) writeFileSync(join(vms, `${name}.yaml`), document(name));
  const { seen } = await terminalAgent(flags);
  await until(() => names.every((name) => seen().includes(` ${name} `)));

  writeFileSync(join(vms, 'a.yaml'), document('a', '  cpuz: 2\n'));
  await until(() => /^\d\d:\d\d:\d\d a +warning: a\.yaml:6: spec\.cpuz: /m.test(seen()));

  const marker = readFileSync(join(vms, '.eitri-lineage'), 'utf8');
  rmSync(join(vms, '.eitri-lineage'));
  await until(() => seen().includes('warning: no contact with local folder'));
  await until(() => seen().includes('it has no .eitri-lineage'));
  writeFileSync(join(vms, '.eitri-lineage'), marker);
  await until(() => /agent +contact with local folder \S+ again/.test(seen()));

  for (const name of names) rmSync(join(vms, `${name}.yaml`));
  await until(() => seen().includes('warning: mass vanishing: a, b, c went missing'));
  const released = await runCli(['vm', 'release-holds', '--run-dir', runDir]);
  expect(released).toMatchObject({ code: 0, stderr: '' });
  expect(released.stdout).toContain('a, b, c: no longer held');
  writeFileSync(join(vms, 'd.yaml'), document('d'));
  await until(() => seen().includes('no longer: mass vanishing'));
});

it('manifests that are handed in to an agent are written into its folder, all or none', async () => {
  const { flags, runDir, vms } = await agentFlags();
  const { child } = startAgent(flags);
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString('utf8')));
  await until(() => err.includes('"event":"agent.started"'));
  const at = ['--run-dir', runDir];
  const document = (name: string, cpus: number, power = 'stopped'): string =>
    `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: ${name}}\nspec: {image: {url: "file:///nowhere.raw", format: raw}, cpus: ${cpus}, power: ${power}}\n`;
  const file = join(vms, '..', 'two.yaml');
  writeFileSync(file, `${document('one', 1)}---\n${document('two', 1)}`);
  const created = await runCli(['vm', 'create', '-f', file, ...at]);
  expect(created).toMatchObject({ code: 0, stdout: 'one (one.yaml), two (two.yaml) are declared now\n' });
  expect(readFileSync(join(vms, 'two.yaml'), 'utf8')).toContain('name: two');

  const again = await runCli(['vm', 'create', '-f', '-', ...at], { input: document('two', 2) });
  expect(again.code).toBe(75);
  expect(again.stderr).toContain('two is declared in two.yaml already');
  const applied = await runCli(['vm', 'apply', '-f', '-', '--json', ...at], { input: document('two', 2) });
  expect(JSON.parse(applied.stdout)).toMatchObject({ changed: true, vms: [{ id: 'two', file: 'two.yaml' }] });
  expect(readFileSync(join(vms, 'two.yaml'), 'utf8')).toContain('cpus: 2');
  const waited = await runCli(['vm', 'apply', '-f', '-', '--wait', ...at], { input: document('two', 3) });
  expect(waited).toMatchObject({ code: 0, stdout: 'two (two.yaml) is declared now\ntwo is stopped\n' });
  const failed = await runCli(['vm', 'apply', '-f', '-', '--wait', ...at], { input: document('two', 3, 'running') });
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(/two failed: ImageNotFound/);
  const bad = await runCli(['vm', 'apply', '-f', '-', ...at], { input: document('two', 0) });
  expect(bad.code).toBe(65);
  expect(bad.stderr).toMatch(/input:4: spec\.cpus/);
  expect((await runCli(['vm', 'apply', '-f', join(vms, 'none.yaml'), ...at])).stderr).toContain('no such file');
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
