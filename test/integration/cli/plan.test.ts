/** `plan`, `vm explain` and `vm events` of the built command line, with an agent in the test's hands. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PlanView } from '@eitri/protocol';
import { describe, expect, it } from 'vitest';
import { runCli, type CliResult } from '../../support/cli.js';
import { OperatorApi } from '../../support/operator-api.js';
import { tempFolder } from '../../support/temp.js';

/** The test's agent takes a name for a whole manifest; its own parser is held where it stands. */
function files(texts: Readonly<Record<string, string>>): string {
  const folder = tempFolder();
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text);
  return folder;
}

const plan = (api: OperatorApi, ...args: readonly string[]): Promise<CliResult> =>
  runCli(['plan', ...args, '--run-dir', api.runDir]);

describe('plan', () => {
  it('exits 0 with nothing to do, and 2 with something, also as JSON', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    const quiet = await plan(api);
    expect([quiet.code, quiet.stderr]).toEqual([0, '']);
    expect(quiet.stdout).toContain('1 VM as wanted: nothing to do');
    api.world.desired.tombstone(uid);
    await api.world.untilPhase('web-1', 'Shelved');
    const busy = await plan(api);
    expect([busy.code, busy.stderr]).toEqual([2, '']);
    expect(busy.stdout).toMatch(/in 5m +destroy it/);
    const json = await plan(api, '--json');
    expect(json.code).toBe(2);
    const view = JSON.parse(json.stdout) as PlanView;
    expect(view.vms[0]?.steps[0]?.inMs).toBeGreaterThan(290_000);
    expect(view.vms[0]?.steps[0]).toMatchObject({
      do: 'destroy',

      waited: { reason: 'ShelvedTombstoned' },
    });
  });

  it('of files, a folder and standard input shows what they would change, and leaves all as it is', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    const folder = files({ 'a.yaml': 'a', 'b.yml': 'b', 'note.txt': 'bad', '.hidden.yaml': 'bad' });
    const other = files({ 'c.json': 'c' });
    const seen = await runCli(['plan', '-f', folder, join(other, 'c.json'), '-f', '-', '--run-dir', api.runDir], {
      input: 'd',
    });
    expect([seen.code, seen.stderr]).toEqual([2, '']);
    for (const name of ['a', 'b', 'c', 'd']) expect(seen.stdout).toContain(`${name}: wanted running, not there yet`);
    expect(seen.stdout).toContain('4 VMs to change; 1 VM as wanted');
    expect(api.world.agent?.engine.report().vms.map(({ id }) => id)).toEqual(['web-1']);
  });

  it('of bad manifests exits 65 and names each fault by its file', async () => {
    const api = await OperatorApi.open();
    const folder = files({ 'a.yaml': 'bad', 'b.yaml': 'bad', 'c.yaml': 'c' });
    const { code, stdout, stderr } = await plan(api, '-f', folder);
    expect([code, stdout]).toEqual([65, '']);
    expect(stderr.replaceAll(folder, '/f')).toBe('error: /f/a.yaml:1: bad: mend it\n  /f/b.yaml:1: bad: mend it\n');
  });

  it.each([
    ['a file that is not there', 'missing.yaml', /no such file/],
    ['a folder without manifests', 'empty', /no manifest is in it/],
    ['too much', 'long.yaml', /more than 1 MiB/],
  ])('of %s exits 65 and says so', async (_what, name, words) => {
    const api = await OperatorApi.open();
    const folder = files({ 'long.yaml': 'x'.repeat(2 ** 20 + 1) });
    mkdirSync(join(folder, 'empty'));
    const { code, stderr } = await plan(api, '-f', join(folder, name));
    expect(code).toBe(65);
    expect(stderr.replace(/\s+/g, ' ')).toMatch(words);
  });

  it('without an agent exits 69', async () => {
    const { code, stderr } = await runCli(['plan', '--run-dir', tempFolder()]);
    expect(code).toBe(69);
    expect(stderr).toContain('no agent answers');
  });
});

describe('vm explain', () => {
  it('says why, and exits 66 for a VM that is not there', async () => {
    const api = await OperatorApi.open();
    const uid = await api.running('web-1');
    api.world.desired.vanish(uid, true);
    await api.world.until(() => api.world.status('web-1')?.reason === 'HeldMassVanish');
    const said = await runCli(['vm', 'explain', 'web-1', '--run-dir', api.runDir]);
    expect([said.code, said.stderr]).toEqual([0, '']);
    expect(said.stdout).toContain('vm release-holds');
    const json = await runCli(['vm', 'explain', uid, '--json', '--run-dir', api.runDir]);
    expect(JSON.parse(json.stdout)).toMatchObject({ uid, asWanted: false, reason: { code: 'HeldMassVanish' } });
    expect((await runCli(['vm', 'explain', 'web-2', '--run-dir', api.runDir])).code).toBe(66);
  });
});

describe('vm events', () => {
  it('since a time are those after it; a time that is none is refused', async () => {
    const api = await OperatorApi.open();
    await api.running('web-1');
    await api.world.clock.advance(60_000);
    api.world.want('web-1', { power: 'stopped' });
    await api.world.untilPhase('web-1', 'Stopped');
    const since = (time: string): Promise<CliResult> =>
      runCli(['vm', 'events', '--since', time, '--json', '--run-dir', api.runDir]);
    const types = ({ stdout }: CliResult): readonly string[] =>
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { type: string }).type);
    expect(types(await since('2026-01-01T00:00:30Z'))).toEqual(['vm.stopping', 'vm.stopped']);
    expect(types(await since('2025-12-31'))).toContain('vm.booted');
    const refused = await since('yesterday');
    expect(refused.code).toBe(64);
    expect(refused.stderr).toContain('--since: want a duration');
  });
});
