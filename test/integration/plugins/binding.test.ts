/**
 * A host's life with its backend, on one state directory: chosen, said, pinned, gone, come back. The built agent as it is
 * installed, with no plugins but those of its user, on a host without KVM. Needs root and QEMU; its guest has no system.
 */
import { chmodSync, cpSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { VmView } from '@eitri/protocol';
import type { PluginListing } from '../../../src/app/plugin-listing.js';
import { AGENT_ROOT, startAgent, type CliResult } from '../../support/cli.js';
import { withoutFolder, withoutKvm } from '../../support/hosts.js';
import { CLOUDHV_BLOCK } from '../../support/plugin-folder.js';
import { PluginHost } from '../../support/plugin-host.js';
import { endProcessesOf, isAlive } from '../../support/processes.js';
import { until } from '../../support/until.js';

const SOON = { timeoutMs: 60_000, everyMs: 200 };
const BECAUSE =
  "cloudhv can't be used: it needs /dev/kvm, which this host does not offer, and it is the only other one";
const prefix = [...withoutKvm(), ...withoutFolder(join(AGENT_ROOT, 'plugins'))];

/** Every file below, with what tells one that was written anew; but for locks, which each start takes. */
function snapshot(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  return names.flatMap((name) => {
    const path = join(folder, name);
    const stat = lstatSync(path);
    if (name === 'lock') return [];
    // The VMM lives on and writes its own files, the firmware's variables among them, when it likes.
    if (name.includes('/guest/')) return [`${name} ${stat.ino} ${stat.mode}`];
    const content = stat.isFile() && stat.size < 2 ** 20 ? readFileSync(path, 'utf8') : '';
    return [`${name} ${stat.ino} ${stat.mode} ${stat.size} ${stat.isFile() ? stat.mtimeMs : ''} ${content}`];
  });
}

it('without KVM qemu is chosen beside cloudhv, told why and pinned; gone, the start is refused and nothing touched', async () => {
  const host = new PluginHost();
  onTestFinished(() => endProcessesOf(host.folder));
  // Root's agent has images converted by a user without rights.
  chmodSync(host.folder, 0o711);
  host.install({ name: '@eitri/plugin-cloudhv', eitri: CLOUDHV_BLOCK });
  const qemu = join(host.folder, 'qemu');
  for (const part of ['package.json', 'dist']) {
    cpSync(join(AGENT_ROOT, 'plugins/qemu', part), join(qemu, part), { recursive: true });
  }
  const cli = (...args: readonly string[]): Promise<CliResult> => host.run(args, { prefix });
  const listing = async (): Promise<PluginListing> =>
    JSON.parse((await cli('plugins', '--json')).stdout) as PluginListing;
  expect((await cli('plugins', 'link', qemu, '--no-install')).code).toBe(0);

  const vms = join(host.folder, 'vms');
  expect((await cli('local', 'init', vms)).code).toBe(0);
  const image = join(host.folder, 'image.raw');
  writeFileSync(image, Buffer.alloc(2 ** 20, 7));
  const spec = `{memory: 64MiB, disk: 1GiB, image: {url: "file://${image}", format: raw}}`;
  const manifest = `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: kept}\nspec: ${spec}\n`;
  writeFileSync(join(vms, 'kept.yaml'), manifest);

  const run = ['--local', vms, '--guest-network', 'user'];
  const seen = async (): Promise<VmView> => {
    const { code, stdout, stderr } = await cli('vm', 'show', 'kept', '--json');
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as VmView;
  };
  const start = async (): Promise<ReturnType<typeof startAgent>> => {
    const agent = startAgent(run, { env: host.env, prefix });
    await until(async () => {
      if (agent.child.exitCode !== null) throw new Error(agent.said());
      const { phase, message } = await seen();
      if (phase !== 'Running') throw new Error(`${phase}: ${message ?? ''}`);
      return true;
    }, SOON);
    return agent;
  };
  const chosen = (said: string): unknown => {
    const line = said.split('\n').find((one) => one.includes('"backend.chosen"'));
    return JSON.parse(line ?? 'null');
  };

  const first = await start();
  expect(chosen(first.said())).toMatchObject({ backend: 'qemu', because: BECAUSE });
  const { pid = 0, boots } = await seen();
  await first.stop();
  const control = (): unknown => JSON.parse(readFileSync(join(host.stateDir, 'control.json'), 'utf8'));
  expect(control()).toMatchObject({ backend: 'qemu', network: 'user' });
  const bound = await listing();
  expect(bound.plugins.map(({ backend, state }) => `${backend ?? ''} ${state}`)).toEqual(['cloudhv off', 'qemu bound']);
  expect(bound.backend).toEqual({ name: 'qemu', because: 'the state directory is bound to it' });

  expect((await cli('plugins', 'uninstall', '@eitri/plugin-qemu')).code).toBe(0);
  const before = [snapshot(host.stateDir), snapshot(join(host.folder, 'run')), snapshot(vms)];
  expect(before[0]?.filter((file) => /^\S+record\.json /.test(file))).toHaveLength(1);
  const refused = await cli('run', ...run);
  expect(refused.code).toBe(78);
  const sentence = refused.stderr.replace(/^\{.*\}\n/gm, '').replaceAll(/\s+/g, ' ');
  expect(sentence).toContain('error: backend qemu is not installed (the state directory is bound to it)');
  expect(sentence).toContain('type: eitri-agent plugins install @eitri/plugin-qemu');
  expect([snapshot(host.stateDir), snapshot(join(host.folder, 'run')), snapshot(vms)]).toEqual(before);
  expect(isAlive(pid)).toBe(true);

  expect((await cli('plugins', 'link', qemu, '--no-install')).code).toBe(0);
  const again = await start();
  expect(chosen(again.said())).toMatchObject({ backend: 'qemu', because: 'the state directory is bound to it' });
  expect(await seen()).toMatchObject({ pid, boots });
});
