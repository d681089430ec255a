/**
 * Plugins that are broken in every way: whatever is typed works, and names the plugin and the reason. Real packages in a
 * data folder of the test's own, and the built agent. Needs root, as whose files the packages are judged.
 */
import { chmodSync, chownSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { wrap } from '../../../src/app/complaint.js';
import type { PluginListing } from '../../../src/app/plugin-listing.js';
import { pluginsText } from '../../../src/commands/shared/plugins-text.js';
import { shown } from '../../support/cli.js';
import { withoutKvm } from '../../support/hosts.js';
import { CLOUDHV_BLOCK, DEMO_BLOCK, entryOf } from '../../support/plugin-folder.js';
import { PluginHost } from '../../support/plugin-host.js';

const COLUMNS = 80;
const NOBODY = 65534;

interface Told {
  /** What names the plugin. */
  readonly name: string;
  readonly reason: string;
}

/** In each line that can be broken at all. */
const expectFits = (text: string): void => {
  for (const line of text.split('\n')) if (line.trim().includes(' ')) expect(line.length, line).toBeLessThanOrEqual(COLUMNS);
}; // prettier-ignore

const flat = (text: string): string => text.replaceAll(/\s+/g, ' ');

const listingOf = (stdout: string): PluginListing => JSON.parse(stdout) as PluginListing;

/** Everything that must go on working; the golden file holds what `plugins` says, and what every other command adds. */
async function expectAllWork(
  host: PluginHost,
  name: string,
  { name: plugin, reason }: Told,
  doctorFlags: readonly string[] = ['--guest-network', 'user', '--backend', 'qemu'],
): Promise<PluginListing> {
  const [help, version, vms, doctor, json] = await Promise.all([
    host.run(['--help']),
    host.run(['--version']),
    host.run(['vm', 'list']),
    host.run(['doctor', ...doctorFlags]),
    host.run(['plugins', '--json']),
  ]);
  expect(help.code).toBe(0);
  expect(help.stdout).toContain('Run the agent');
  expect(version.code).toBe(0);
  expect(version.stdout).toMatch(/^@eitri\/agent\/\S+ /);
  expect(vms.code).toBe(69);
  expect(flat(vms.stderr)).toContain('no agent answers');
  expect(doctor.stdout).toMatch(/^ok +node /m);
  expect(json.code).toBe(0);

  for (const told of [help.stderr, version.stderr, vms.stderr, doctor.stdout, json.stdout]) {
    expect(flat(told)).toContain(plugin);
    expect(flat(told)).toContain(reason);
    expect(told).not.toMatch(/^\s+at /m);
  }
  const place = (text: string): string => text.replaceAll(host.folder, '/folder');
  const listed = pluginsText(listingOf(place(json.stdout)), COLUMNS);
  for (const text of [version.stderr, doctor.stdout, listed]) expectFits(text);
  const warned = shown({ ...version, stdout: '' }, host.folder, (sentence) => wrap(sentence, COLUMNS));
  await expect(`${listed}\n${warned}`).toMatchFileSnapshot(`../../golden/cli/plugins-${name}.txt`);
  return listingOf(json.stdout);
}

describe('a plugin', () => {
  it.each<[string, (host: PluginHost) => void, string]>([
    ['without-entry', (host) => rmSync(join(host.install(), 'index.js')), 'its entry ./index.js is missing'],
    ['throws', (host) => host.link({ files: { 'index.js': 'throw new Error("boom")' } }), 'it fails when it is loaded: boom'],
    ['ends-the-process', (host) => host.link({ files: { 'index.js': 'process.exit(0)' } }), 'it ends the process'],
    ['never-loads', (host) => host.link({ files: { 'index.js': 'await new Promise(() => {})' } }), 'its top-level await never ends'],
    ['other-exports', (host) => host.install({ files: { 'index.js': entryOf({ ...DEMO_BLOCK, name: 'else' }) } }), 'name else, not demo'],
    ['no-exports', (host) => host.install({ files: { 'index.js': 'export default 7' } }), 'it exports no backend'],
    ['other-contract', (host) => host.install({ eitri: { ...DEMO_BLOCK, contract: 99 } }), 'it was built for contract 99'],
    ['other-system', (host) => host.install({ eitri: { ...DEMO_BLOCK, os: ['plan9'] } }), 'it runs on plan9'],
    ['other-processor', (host) => host.install({ eitri: { ...DEMO_BLOCK, needs: { arch: ['vax'] } } }), 'it needs vax'],
    ['writable-by-others', (host) => chmodSync(join(host.install(), 'index.js'), 0o666), 'is writable by others than root'],
    ['not-owned-by-root', (host) => chownSync(join(host.install(), 'index.js'), NOBODY, NOBODY), 'is not owned by root'],
    ['malformed-block', (host) => host.install({ eitri: { ...DEMO_BLOCK, kind: 'hypervisor' } }), 'wrong at eitri.kind'],
    ['half-a-package-json', (host) => host.install({ files: { 'package.json': '{"name": "@x/demo"' } }), "its package.json can't be read"],
    ['no-package-json', (host) => rmSync(join(host.install(), 'package.json')), 'its package.json is missing'],
    ['gone', (host) => rmSync(host.link(), { recursive: true }), 'is gone'],
    ['commands-throw', (host) => host.link({ oclif: { commands: './commands', hooks: { init: './hook.js' } }, files: { 'commands/hi.js': 'throw new Error("boom")', 'hook.js': 'throw new Error("boom")' } }), 'it has no oclif.manifest.json'],
  ])('%s: all commands work, and say so', async (name, make, reason) => {
    const host = new PluginHost();
    make(host);
    const { plugins, backend } = await expectAllWork(host, name, { name: '@x/demo', reason });
    // Nothing of it is chosen, and what is whole goes on.
    const row = plugins.find((one) => one.name === '@x/demo');
    if (name === 'commands-throw') expect(row?.state).toBe('ready');
    else expect(row).toMatchObject({ state: 'off' });
    if (name !== 'commands-throw') expect(backend).toMatchObject({ name: 'qemu' });
  }); // prettier-ignore

  it('takes the name of a part of the agent: that part stays', async () => {
    const host = new PluginHost();
    host.install({ name: '@oclif/plugin-plugins', files: { 'index.js': 'throw new Error("boom")' } });
    const told = { name: '@oclif/plugin-plugins', reason: 'it has the name of a part of the agent itself' };
    await expectAllWork(host, 'own-part', told);
    expect((await host.run(['plugins', 'link', '--help'])).code).toBe(0);
  });

  it('has a command that throws: that command fails, and no other', async () => {
    const host = new PluginHost();
    const command = {
      id: 'demo',
      isESM: true,
      relativePath: ['commands', 'demo.js'],
      flags: {},
      args: {},
      aliases: [],
    };
    host.install({
      oclif: { commands: './commands' },
      files: {
        'commands/demo.js': 'throw new Error("boom")',
        'oclif.manifest.json': JSON.stringify({ version: '2.0.0', commands: { demo: command } }),
      },
    });
    const demo = await host.run(['demo']);
    expect(demo.code).toBe(1);
    expect(demo.stderr).toContain('error: boom');
    const vms = await host.run(['vm', 'list']);
    expect(vms.code).toBe(69);
    expect(vms.stderr).not.toContain('boom');
  });
});

describe('the list of plugins', () => {
  it('is torn: all commands work, and say how to mend that, which helps', async () => {
    const host = new PluginHost();
    host.install();
    writeFileSync(host.listPath, '{"oclif":');
    await expectAllWork(host, 'torn-list', { name: '(all of the user)', reason: 'plugins reset --hard' });
    expect((await host.run(['plugins', 'reset', '--hard'])).code).toBe(0);
    const after = await host.run(['--version']);
    expect(after.stderr).toBe('');
  });
});

describe('the choice', () => {
  it('falls on several: all commands say what to type, and a start is refused with it', async () => {
    const host = new PluginHost();
    host.install();
    const told = { name: 'demo, qemu', reason: 'choose one with --backend NAME' };
    await expectAllWork(host, 'two-qualify', told, ['--guest-network', 'user']);
    const plain = await host.run(['plugins']);
    expect(plain.stdout).toContain('@x/demo');
    expectFits(plain.stdout);
    const vms = join(host.folder, 'vms');
    expect((await host.run(['local', 'init', vms])).code).toBe(0);
    const start = await host.run(['run', '--local', vms, '--guest-network', 'user']);
    expect(start.code).toBe(78);
    expect(flat(start.stderr)).toContain('several backends qualify (demo, qemu): choose one with --backend NAME');
  });

  it('falls on one of two network plugins: all commands say what to type', async () => {
    const host = new PluginHost();
    host.install({ name: '@x/net', eitri: { ...DEMO_BLOCK, kind: 'network', name: 'net' } });
    const told = { name: 'net, netenv-linux', reason: 'choose one with --guest-network NAME' };
    await expectAllWork(host, 'two-networks-qualify', told, ['--backend', 'qemu']);
  });

  it('was made, and is gone: all commands say what to type, and a start is refused with it', async () => {
    const host = new PluginHost();
    host.bind({ backend: 'cloudhv' });
    const told = { name: 'cloudhv', reason: 'plugins install @eitri/plugin-cloudhv' };
    await expectAllWork(host, 'bound-and-gone', told, ['--guest-network', 'user']);
    const vms = join(host.folder, 'vms');
    expect((await host.run(['local', 'init', vms])).code).toBe(0);
    const start = await host.run(['run', '--local', vms, '--guest-network', 'user']);
    expect(start.code).toBe(78);
    expect(flat(start.stderr)).toContain('plugins install @eitri/plugin-cloudhv');
  });
});

describe('a linked plugin', () => {
  it('is judged as soon as it is linked, shown until it is unlinked, and no longer', async () => {
    const host = new PluginHost();
    const root = new PluginHost().link({ files: { 'index.js': 'throw new Error("boom")' } });
    const linked = await host.run(['plugins', 'link', root, '--no-install']);
    expect(linked.code).toBe(0);
    expect(flat(linked.stderr)).toContain('warning: plugin @x/demo is off: it fails when it is loaded: boom');
    expect((await host.run(['--version'])).stderr).toContain('@x/demo');
    // Mended: what was found out about the former content does not count.
    writeFileSync(join(root, 'index.js'), entryOf(DEMO_BLOCK));
    expect((await host.run(['--version'])).stderr).not.toContain('is off');
    expect((await host.run(['plugins', 'uninstall', '@x/demo'])).code).toBe(0);
    expect((await host.run(['plugins'])).stdout).not.toContain('@x/demo');
  });
});

describe('on a host without KVM', () => {
  it('cloudhv beside qemu: qemu is chosen, and it is said why', async () => {
    const host = new PluginHost();
    host.install({ name: '@eitri/plugin-cloudhv', eitri: CLOUDHV_BLOCK });
    const { stdout } = await host.run(['plugins', '--json'], { prefix: withoutKvm() });
    const because =
      "cloudhv can't be used: it needs /dev/kvm, which this host does not offer, and it is the only other one";
    expect(listingOf(stdout).backend).toEqual({ name: 'qemu', because });
  });
});
