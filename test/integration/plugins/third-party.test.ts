/**
 * A backend of somebody else's, in a folder outside of this workspace, over our packages as they are packed: its own vitest
 * runs our suite on it, the agent links it and runs a VM with it. Needs qemu-img, and root, whose files plugins have to be.
 */
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { VmView } from '@eitri/protocol';
import { expect, it } from 'vitest';
import type { PluginListing } from '../../../src/app/plugin-listing.js';
import { AGENT_ROOT, startAgent } from '../../support/cli.js';
import { PluginHost } from '../../support/plugin-host.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const run = promisify(execFile);
const FIXTURE = fileURLToPath(new URL('../../fixtures/third-party', import.meta.url));
/** What an install would bring beside our own packages. */
const OTHERS = ['reflect-metadata', 'tsyringe', 'vitest'];

/** The package with its dependencies: ours unpacked from what would be published, the rest from this checkout. */
async function thirdParty(): Promise<string> {
  const root = join(tempFolder(), 'paper');
  cpSync(FIXTURE, root, { recursive: true });
  const modules = join(root, 'node_modules');
  const packed = tempFolder();
  const args = ['pack', '--ignore-scripts', '--pack-destination', packed, './src/core', './src/conformance'];
  await run('npm', args, { cwd: AGENT_ROOT, maxBuffer: 2 ** 26 });
  for (const tarball of readdirSync(packed)) {
    const to = join(modules, '@eitri', tarball.includes('core') ? 'core' : 'conformance');
    mkdirSync(to, { recursive: true });
    await run('tar', ['-xzf', join(packed, tarball), '-C', to, '--strip-components=1', '--no-same-owner']);
  }
  for (const name of OTHERS) symlinkSync(join(AGENT_ROOT, 'node_modules', name), join(modules, name));
  return root;
}

it('a third party’s backend keeps the contract in its own vitest, is linked, chosen by its name, and runs a VM', async () => {
  const root = await thirdParty();
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const { stdout } = await run(process.execPath, [vitest, 'run', '--root', root, '--reporter', 'json'], { cwd: root, maxBuffer: 2 ** 26 }); // prettier-ignore
  const suite = JSON.parse(stdout.slice(stdout.indexOf('{"num'))) as {
    readonly numPassedTests: number;
    readonly numFailedTests: number;
  };
  expect(suite.numFailedTests).toBe(0);
  expect(suite.numPassedTests).toBeGreaterThan(20);

  const host = new PluginHost();
  // Root's agent has images converted by a user without rights.
  chmodSync(host.folder, 0o711);
  const linked = await host.run(['plugins', 'link', root, '--no-install']);
  expect({ code: linked.code, warned: linked.stderr.includes('is off') }).toEqual({ code: 0, warned: false });
  const listing = JSON.parse((await host.run(['plugins', '--json'])).stdout) as PluginListing;
  expect(listing.plugins.find(({ backend }) => backend === 'paper')).toMatchObject({
    origin: 'linked',
    state: 'ready',
  });
  // Beside the checkout's own it has to be asked for.
  expect(listing.backend).toMatchObject({ refused: expect.stringContaining('--backend NAME') as string });

  const vms = join(host.folder, 'vms');
  await host.run(['local', 'init', vms]);
  const image = join(host.folder, 'image.raw');
  writeFileSync(image, Buffer.alloc(2 ** 20, 7));
  const spec = `{memory: 64MiB, disk: 1GiB, image: {url: "file://${image}", format: raw}}`;
  const manifest = `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata: {name: sheet}\nspec: ${spec}\n`;
  writeFileSync(join(vms, 'sheet.yaml'), manifest);
  startAgent(['--local', vms, '--backend', 'paper', '--guest-network', 'user'], { env: host.env });
  const vm = await until(
    async () => {
      const { code, stdout: shown, stderr } = await host.run(['vm', 'show', 'sheet', '--json']);
      if (code !== 0) throw new Error(stderr);
      const view = JSON.parse(shown) as VmView;
      if (view.phase !== 'Running') throw new Error(`${view.phase}: ${view.message ?? ''}`);
      return view;
    },
    { timeoutMs: 60_000, everyMs: 200 },
  );
  expect(vm.phase).toBe('Running');
  const bound = JSON.parse((await host.run(['plugins', '--json'])).stdout) as PluginListing;
  expect(bound.backend).toMatchObject({ name: 'paper' });
});
