/**
 * The agent as strangers get it: installed from its packed tarball, in a clean root, without any backend, which they then
 * install by name. Real guests boot with what was installed: in networks of their own, and on that of their host.
 *
 * Everything comes from a registry on loopback, which asks npm's own for what is not ours. Needs that one to be reachable,
 * root, QEMU, and the tools of the guests' network.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PluginListing } from '../../../src/app/plugin-listing.js';
import { AGENT_ROOT } from '../../support/cli.js';
import { CleanRoot } from '../../support/clean-root.js';
import { tinyGuest } from '../../support/guest.js';
import { prompt, tinyManifest } from '../../support/guests.js';
import { Namespace } from '../../support/netenv/namespace.js';
import { BOOT, Operator } from '../../support/operator.js';
import { TestRegistry } from '../../support/registry.js';
import { removeFolder, sharedFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const run = promisify(execFile);
const INSTALL_MS = 300_000;

const folder = sharedFolder('eit-reg-');
const home = join(folder, 'home');
const prefix = join(folder, 'prefix');
const program = join(prefix, 'lib/node_modules/@eitri/agent/bin/run.js');
const image = join(folder, 'tiny.raw');
// Of the caller's environment no more than where programs are: no cache, no settings, no plugins of theirs.
const env: NodeJS.ProcessEnv = { PATH: process.env['PATH'], HOME: home, NO_COLOR: '1', TZ: 'UTC' };
/** Undone at the end, the last first. */
const undo: (() => Promise<void> | void)[] = [];
let root: CleanRoot;
let operator: Operator;
let installWarnings = '';

afterAll(async () => {
  for (const step of undo.reverse()) await step();
});

beforeAll(async () => {
  undo.push(() => removeFolder(folder));
  mkdirSync(home);
  const registry = await TestRegistry.start(folder);
  undo.push(() => registry.stop());
  env['EITRI_AGENT_NPM_REGISTRY'] = registry.url;
  const tarball = await registry.publishWorkspace();
  copyFileSync(await tinyGuest(), image);
  root = await CleanRoot.make(join(folder, 'root'));
  undo.push(() => root.leave());
  operator = new Operator({ program, env, enter: root.enter });
  undo.push(() => operator.remove());
  ({ stderr: installWarnings } = await inRoot(
    ...['npm', 'install', '--global', '--prefix', prefix, '--registry', registry.url, tarball],
  ));
}, INSTALL_MS);

/** A command of whoever sits at that machine. */
function inRoot(...words: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const [enter = '', ...more] = [...root.enter, ...words];
  return run(enter, more, { env, maxBuffer: 2 ** 26, timeout: INSTALL_MS });
}

const plugins = async (): Promise<PluginListing> =>
  JSON.parse(await operator.done('plugins', '--json')) as PluginListing;

/** `plugins install` takes no flags of ours. */
async function typed(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await inRoot(join(prefix, 'bin/eitri-agent'), ...args);
  return `${stdout}${stderr}`;
}

describe('an agent that was just installed', () => {
  it('stands in a root without a checkout', async () => {
    await expect(inRoot('ls', AGENT_ROOT)).rejects.toThrow('No such file');
  });

  it('brings no package that wants another Node', () => {
    expect(installWarnings).not.toContain('EBADENGINE');
  });

  it('has no backend, and says which one to install', async () => {
    expect(await plugins()).toMatchObject({ plugins: [] });
    await operator.init();
    const { code, stderr } = await operator.cli('run', '--local', operator.manifests, '--guest-network', 'user');
    expect(code).toBe(78);
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain(
      'no backend can run guests here: cloudhv is not installed; type: eitri-agent plugins install @eitri/plugin-cloudhv (or @eitri/plugin-qemu',
    );
  });

  it('knows no backend that nobody published', async () => {
    await expect(typed('plugins', 'install', '@eitri/plugin-nosuch')).rejects.toThrow('does not exist in the registry');
  });

  it('installs backends by name, lists them, and would choose them', { timeout: INSTALL_MS }, async () => {
    expect(await typed('plugins', 'install', '@eitri/plugin-qemu')).not.toContain('warning:');
    expect(await typed('plugins', 'install', '@eitri/plugin-netenv-linux')).not.toContain('warning:');
    const { plugins: listed, backend, network } = await plugins();
    expect(listed.map(({ name, origin, state }) => `${name} ${origin ?? ''} ${state}`)).toEqual([
      '@eitri/plugin-netenv-linux installed ready',
      '@eitri/plugin-qemu installed ready',
    ]);
    expect(backend).toMatchObject({ name: 'qemu' });
    expect(network).toMatchObject({ name: 'netenv-linux' });
  });

  it('boots a real guest with what it installed, and is bound to it', async () => {
    operator.put('one.yaml', await tinyManifest({ name: 'one', image }));
    await operator.start();
    await operator.untilPrinted('one', prompt('one'));
    expect((await operator.vm('one')).phase).toBe('Running');
    const { plugins: listed } = await plugins();
    expect(listed.find(({ backend }) => backend === 'qemu')?.state).toBe('bound');
  });

  it('refuses to start without the backend that it is bound to, says what to type, and goes on with it', async () => {
    await operator.stop();
    await typed('plugins', 'uninstall', '@eitri/plugin-qemu');
    const { code, stderr } = await operator.refused();
    expect(code).toBe(78);
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain('type: eitri-agent plugins install @eitri/plugin-qemu');
    await typed('plugins', 'install', '@eitri/plugin-qemu');
    await operator.start();
    // The guest ran on, without agent and without plugin.
    expect(await operator.vm('one')).toMatchObject({ phase: 'Running', boots: 1 });
  });

  it('boots a real guest on the network of its host with what it installed', async () => {
    const net = await Namespace.make();
    undo.push(() => net.remove());
    const machine = await CleanRoot.make(join(folder, 'machine'), ['ip', 'netns', 'exec', net.name]);
    const bridged = new Operator({ program, env, host: net, enter: machine.enter });
    undo.push(() => bridged.remove());
    await bridged.init();
    bridged.put('two.yaml', await tinyManifest({ name: 'two', image }));
    await bridged.start();
    await bridged.untilPrinted('two', prompt('two'));
    const { phase, address = '' } = await bridged.vm('two');
    expect(phase).toBe('Running');
    expect(await bridged.logs('two')).toContain(`eth0 ip=${address}/`);
    const asked = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | socat -t 5 - TCP4:${address}:80,connect-timeout=2`;
    expect(await until(() => net.exec('sh', '-c', asked), BOOT)).toMatch(/^tiny /m);
    const { network } = JSON.parse(await bridged.done('plugins', '--json')) as PluginListing;
    expect(network).toMatchObject({ name: 'netenv-linux' });
  });
});
