/**
 * The agent as strangers get it: from a registry, in a place without a checkout, without any backend, which they then
 * install by name.
 *
 * Everything comes from a registry on loopback, which asks npm's own for what is not ours. Needs that one to be reachable.
 */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PluginListing } from '../../../src/app/plugin-listing.js';
import { prompt, tinyManifest } from '../../support/guests.js';
import { Operator } from '../../support/operator.js';
import { TestRegistry } from '../../support/registry.js';
import { removeFolder, sharedFolder } from '../../support/temp.js';

const run = promisify(execFile);
const INSTALL_MS = 300_000;

const folder = sharedFolder('eit-reg-');
const home = join(folder, 'home');
const prefix = join(folder, 'prefix');
const program = join(prefix, 'lib/node_modules/@eitri/agent/bin/run.js');
let registry: TestRegistry;
let operator: Operator;
let env: NodeJS.ProcessEnv;
let installWarnings = '';

afterAll(async () => {
  await operator.remove();
  await registry.stop();
  removeFolder(folder);
});

beforeAll(async () => {
  mkdirSync(home);
  registry = await TestRegistry.start(folder);
  await registry.publishWorkspace();
  // Of the caller's environment no more than where programs are: no cache, no settings, no plugins of theirs.
  env = { PATH: process.env['PATH'], HOME: home, NO_COLOR: '1', TZ: 'UTC', EITRI_AGENT_NPM_REGISTRY: registry.url };
  operator = new Operator({ program, env });
  const args = ['install', '--global', '--prefix', prefix, '--registry', registry.url, '@eitri/agent'];
  ({ stderr: installWarnings } = await run('npm', args, { cwd: home, env, maxBuffer: 2 ** 26 }));
}, INSTALL_MS);

const plugins = async (): Promise<PluginListing> =>
  JSON.parse(await operator.done('plugins', '--json')) as PluginListing;

/** `plugins install` takes no flags of ours. */
async function typed(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run(process.execPath, [program, ...args], { cwd: home, env, timeout: INSTALL_MS });
  return `${stdout}${stderr}`;
}

describe('an agent that was just installed', () => {
  it('brings no package that wants another Node', () => {
    expect(installWarnings).not.toContain('EBADENGINE');
  });

  it('has no backend, and says which one to install', async () => {
    expect(await plugins()).toMatchObject({ plugins: [] });
    await operator.init();
    const { code, stderr } = await operator.cli('run', '--local', operator.manifests, '--guest-network', 'user');
    expect(code).toBe(78);
    expect(stderr.replaceAll(/\s+/g, ' ')).toContain('type: eitri-agent plugins install @eitri/plugin-');
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
    operator.put('one.yaml', await tinyManifest({ name: 'one' }));
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
});
