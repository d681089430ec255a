/**
 * Backends that are installed by name, from a registry that holds this workspace as it is packed. What a stranger then
 * does with them, agent and guest included, is in test/long/plugins.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PluginListing } from '../../../src/app/plugin-listing.js';
import { PluginHost } from '../../support/plugin-host.js';
import { TestRegistry } from '../../support/registry.js';
import { removeFolder, sharedFolder } from '../../support/temp.js';

const run = promisify(execFile);
const folder = sharedFolder('eit-reg-');
let registry: TestRegistry | undefined;

afterAll(async () => {
  await registry?.stop();
  removeFolder(folder);
});

beforeAll(async () => {
  registry = await TestRegistry.start(folder);
  await registry.publishWorkspace();
}, 120_000);

const env = (): Readonly<Record<string, string>> => ({ EITRI_AGENT_NPM_REGISTRY: registry?.url ?? '' });

describe('a registry with the packages of this workspace', () => {
  it('gives backends to plugins install, which are listed and chosen before those of the checkout', async () => {
    const host = new PluginHost();
    for (const name of ['@eitri/plugin-qemu', '@eitri/plugin-netenv-linux']) {
      const { code, stderr } = await host.run(['plugins', 'install', name], { env: env() });
      expect({ code, warned: stderr.includes('warning:') }).toEqual({ code: 0, warned: false });
    }
    const listing = JSON.parse((await host.run(['plugins', '--json'])).stdout) as PluginListing;
    expect(listing.plugins.map(({ name, origin, state }) => `${name} ${origin ?? ''} ${state}`)).toEqual([
      '@eitri/plugin-netenv-linux installed ready',
      '@eitri/plugin-qemu installed ready',
    ]);
    expect(listing.plugins.every(({ root }) => root?.startsWith(host.dataDir))).toBe(true);
    expect(listing.backend).toMatchObject({ name: 'qemu' });
    expect(listing.network).toMatchObject({ name: 'netenv-linux' });
  });

  it('has no package that nobody published, and says so', async () => {
    const { code, stderr } = await new PluginHost().run(['plugins', 'install', '@eitri/plugin-nosuch'], { env: env() });
    expect(code).toBe(1);
    expect(stderr).toContain('@eitri/plugin-nosuch does not exist in the registry');
  });

  it('takes what is packed for whole: entries, types and licence, and nothing of the build or the tests', async () => {
    for (const path of ['src/core', 'src/protocol', 'src/conformance', 'plugins/qemu', 'plugins/netenv-linux']) {
      const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', `./${path}`]);
      const [packed] = Object.values(JSON.parse(stdout) as Record<string, { readonly files: readonly { readonly path: string }[] }>);
      const files = packed?.files.map((file) => file.path) ?? [];
      expect(files.some((file) => file.endsWith('.js')), path).toBe(true);
      expect(files.some((file) => file.endsWith('.d.ts')), path).toBe(true);
      expect(files, path).toContain('LICENSE');
      expect(files.filter((file) => /tsbuildinfo|\.test\.|(?<!\.d)\.ts$/.test(file)), path).toEqual([]);
    }
  }); // prettier-ignore
});
