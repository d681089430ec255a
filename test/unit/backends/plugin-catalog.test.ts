import { chmodSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadBackend, readCatalog, readPackages } from '../../../src/backends/index.js';
import type { HostAbilities, PluginPackage, PluginRoot } from '../../../src/backends/index.js';
import { CLOUDHV_BLOCK, DEMO_BLOCK, VFKIT_BLOCK, writePlugin, type PluginFiles } from '../../support/plugin-folder.js';
import { tempFolder } from '../../support/temp.js';

const HOST: HostAbilities = { facts: { os: 'linux', arch: 'x64', root: false }, kvm: false };

const plugin = (files?: PluginFiles): string => writePlugin(join(tempFolder(), 'plugin'), files);
const roots = (...at: readonly string[]): readonly PluginRoot[] => at.map((root) => ({ root, origin: 'installed' }));

async function read(files: PluginFiles, host: Partial<HostAbilities> = {}): Promise<PluginPackage> {
  const [entry] = await readPackages(roots(plugin(files)), { ...HOST, ...host });
  if (entry === undefined) throw new Error('left out');
  return entry;
}

describe('a package', () => {
  it('with a whole eitri block can be chosen', async () => {
    const entry = await read({});
    expect(entry).toMatchObject({ packageName: '@x/demo', version: '2.0.0', manifest: { name: 'demo' }, notes: [] });
    expect(entry.refused).toBeUndefined();
  });

  it('without an eitri block is no backend, and no fault', async () => {
    const root = plugin({ eitri: undefined });
    expect(await readCatalog(roots(root), HOST)).toEqual([]);
    expect((await readPackages(roots(root), HOST))[0]?.refused).toBeUndefined();
  });

  it.each([
    ['another contract number', { ...DEMO_BLOCK, contract: 99 }, 'contract 99, and this agent speaks 1'],
    ['an entry that is missing', { ...DEMO_BLOCK, entry: './gone.js' }, './gone.js is missing'],
    ['a folder as its entry', { ...DEMO_BLOCK, entry: './' }, 'leads out of the package'],
    ['an entry outside of the package', { ...DEMO_BLOCK, entry: '../index.js' }, 'out of the package'],
    ['an unknown kind', { ...DEMO_BLOCK, kind: 'thing' }, 'eitri.kind: want "provisioner" or "network", got "thing"'],
    ['no name', { ...DEMO_BLOCK, name: undefined }, 'eitri.name: want 1 to 32'],
    ['a name that is no name', { ...DEMO_BLOCK, name: '../x' }, 'got "../x"'],
    ['half a contract number', { ...DEMO_BLOCK, contract: 1.5 }, 'eitri.contract: want a whole number, got 1.5'],
    ['no system', { ...DEMO_BLOCK, os: [] }, 'eitri.os'],
    ['needs that are none', { ...DEMO_BLOCK, needs: { kvm: 'yes' } }, 'eitri.needs.kvm: want true or false, got "yes"'],
    ['a block that is no object', 'yes', 'at eitri: want an object, got "yes"'],
    ['no block at all but the field', null, 'at eitri: want an object, got null'],
  ])('that names %s is off with that reason, which is the fault of the package', async (_case, eitri, reason) => {
    const entry = await read({ eitri });
    expect(entry.refused).toContain(reason);
    expect(entry.unfit).toBeUndefined();
  });

  it.each([
    ['another system', VFKIT_BLOCK, 'it runs on darwin, and this host is linux'],
    ['another architecture', { ...DEMO_BLOCK, needs: { arch: ['arm64', 'riscv64'] } }, 'needs arm64 or riscv64'],
    ['KVM, which is not there', { ...DEMO_BLOCK, needs: { kvm: true } }, 'needs /dev/kvm'],
    ['a network plugin, which is not there', { ...DEMO_BLOCK, needs: { network: true } }, 'needs a network plugin'],
  ])('that needs %s is off with that reason, which is no fault', async (_case, eitri, reason) => {
    expect(await read({ eitri })).toMatchObject({ refused: expect.stringContaining(reason) as string, unfit: true });
  });

  it('that needs KVM and a network plugin can be chosen where both are', async () => {
    const network = plugin({ name: '@x/net', eitri: { ...DEMO_BLOCK, kind: 'network', name: 'net' } });
    const cloudhv = plugin({ name: '@eitri/plugin-cloudhv', eitri: CLOUDHV_BLOCK });
    const entries = await readCatalog(roots(network, cloudhv), { ...HOST, kvm: true });
    expect(entries.map(({ refused }) => refused)).toEqual([undefined, undefined]);
  });

  it('that needs a network plugin is off where the one that is there is itself off', async () => {
    const network = plugin({ name: '@x/net', eitri: { ...DEMO_BLOCK, kind: 'network', name: 'net', contract: 2 } });
    const cloudhv = plugin({ name: '@eitri/plugin-cloudhv', eitri: CLOUDHV_BLOCK });
    const [entry] = await readCatalog(roots(network, cloudhv), { ...HOST, kvm: true });
    expect(entry).toMatchObject({ packageName: '@eitri/plugin-cloudhv', unfit: true });
  });

  it('keeps to itself what newer agents may know', async () => {
    expect((await read({ eitri: { ...DEMO_BLOCK, future: 1, needs: { moon: true } } })).refused).toBeUndefined();
  });

  it('whose package.json is half, missing, or no object, or that is gone, is off and disturbs nobody', async () => {
    const half = plugin({ files: { 'package.json': '{"name":' } });
    const none = plugin();
    rmSync(join(none, 'package.json'));
    const list = plugin({ files: { 'package.json': '[]' } });
    const good = plugin();
    const listed = ['@x/half', '@x/none', '@x/list', '@x/gone'];
    const entries = await readCatalog(
      [
        ...[half, none, list, '/nowhere/at/all'].map((root, at) => ({
          root,
          origin: 'linked' as const,
          ...(listed[at] === undefined ? {} : { listedAs: listed[at] }),
        })),
        ...roots(good),
      ],
      HOST,
    );
    const told = Object.fromEntries(entries.map(({ packageName, refused }) => [packageName, refused]));
    expect(told['@x/demo']).toBeUndefined();
    expect(told['@x/half']).toContain("its package.json can't be read (Unexpected end of JSON input)");
    expect(told['@x/none']).toContain('its package.json is missing');
    expect(told['@x/list']).toContain('want an object');
    expect(told['@x/gone']).toContain('/nowhere/at/all is gone');
    for (const name of listed) expect(told[name]).toContain(`eitri-agent plugins uninstall ${name}`);
  });

  it("of the user's own stands for the one of that name that came with the checkout, also when it is broken", async () => {
    const own = plugin({ eitri: { ...DEMO_BLOCK, contract: 2 } });
    const entries = await readCatalog([...roots(own), { root: plugin(), origin: 'checkout' }], HOST);
    expect(entries.map(({ root }) => root)).toEqual([own]);
  });

  it('has another fingerprint when one of its files changed', async () => {
    const root = plugin({ files: { 'lib/part.js': '' } });
    const before = await readPackages(roots(root), HOST);
    expect(await readPackages(roots(root), HOST)).toEqual(before);
    writeFileSync(join(root, 'lib/more.js'), '');
    expect((await readPackages(roots(root), HOST))[0]?.fingerprint).not.toBe(before[0]?.fingerprint);
  });
});

describe('the commands of a package', () => {
  const manifest = (version = '2.0.0'): string =>
    JSON.stringify({ version, commands: { hi: { id: 'hi', isESM: true, relativePath: ['hi.js'] } } });

  it('are taken from its manifest', async () => {
    expect(await read({ files: { 'oclif.manifest.json': manifest() } })).toMatchObject({ commands: true, notes: [] });
  });

  it.each<[string, Readonly<Record<string, string>>, string]>([
    ['has no manifest', {}, 'it has no oclif.manifest.json'],
    ['has a torn manifest', { 'oclif.manifest.json': '{' }, "its oclif.manifest.json can't be read"],
    ['has the manifest of another version', { 'oclif.manifest.json': manifest('1.0.0') }, 'is of version 1.0.0'],
    ['has a manifest without commands', { 'oclif.manifest.json': '{"version":"2.0.0"}' }, 'lists none'],
    ['has a manifest of an old kind', { 'oclif.manifest.json': '{"version":"2.0.0","commands":{"a":{}}}' }, 'where they stand'],
  ])('are off, and the backend is not, when it %s', async (_case, files, why) => {
    const entry = await read({ oclif: { commands: './commands' }, files });
    expect(entry.commands).toBe(false);
    expect(entry.refused).toBeUndefined();
    expect(entry.notes).toEqual([expect.stringContaining(why)]);
  }); // prettier-ignore

  it('come without its hooks', async () => {
    expect((await read({ oclif: { hooks: { init: './init.js' } } })).notes).toEqual([
      'its hooks are not run (init): a backend needs none',
    ]);
  });
});

describe('for root, a package', () => {
  /** Of a whole tree: where the tests do not run as root, nothing in it is root's own. */
  const expectTrusted = (refused: string | undefined): void => {
    if (process.getuid?.() === 0) expect(refused).toBeUndefined();
    else expect(refused).toContain('is not owned by root');
  };
  const asRoot: HostAbilities = { ...HOST, facts: { ...HOST.facts, root: true } };
  const refusal = async (root: string): Promise<string | undefined> =>
    (await readPackages(roots(root), asRoot))[0]?.refused;

  it.each(['', 'package.json', 'index.js', 'lib', 'lib/part.js'])(
    'is off when others may write to %j, and it is said how to mend that',
    async (path) => {
      const root = plugin({ files: { 'lib/part.js': '' } });
      chmodSync(join(root, path), 0o777);
      // Where the tests do not run as root, nothing here is root's own in the first place.
      expect(await refusal(root)).toMatch(/writable by others than root.*chmod -R go-w|not owned by root.*chown/);
      expect((await readPackages(roots(root), HOST))[0]?.refused).toBeUndefined();
    },
  );

  it('is off when another backend is declared by a package that nobody may trust, whatever else is wrong', async () => {
    const root = plugin({ eitri: { ...DEMO_BLOCK, entry: './gone.js' } });
    chmodSync(root, 0o777);
    expect(await refusal(root)).toContain('root');
  });

  it('without an eitri block is off too: its commands would run', async () => {
    const root = plugin({ eitri: undefined });
    chmodSync(root, 0o777);
    expect(await refusal(root)).toContain('root');
  });

  it('is off when a folder above, what a link in it leads to, or a dependency may be written by others', async () => {
    const above = plugin();
    chmodSync(join(above, '..'), 0o777);
    expect(await refusal(above)).toContain(`${join(above, '..')} is`);

    const elsewhere = plugin({ name: '@x/elsewhere' });
    const linking = plugin();
    symlinkSync(elsewhere, join(linking, 'part'));
    expectTrusted(await refusal(linking));
    chmodSync(join(elsewhere, 'index.js'), 0o666);
    expect(await refusal(linking)).toContain(join(elsewhere, 'index.js'));

    const folder = tempFolder();
    const needy = writePlugin(join(folder, 'node_modules/@x/demo'), {
      files: { 'package.json': JSON.stringify({ name: '@x/demo', dependencies: { dep: '1' }, eitri: DEMO_BLOCK }) },
    });
    writePlugin(join(folder, 'node_modules/dep'), { name: 'dep', eitri: undefined });
    expectTrusted(await refusal(needy));
    chmodSync(join(folder, 'node_modules/dep/index.js'), 0o666);
    expect(await refusal(needy)).toContain('node_modules/dep/index.js');
  });

  it('is read to its end though links in it lead in a circle, or nowhere', async () => {
    const root = plugin();
    symlinkSync('.', join(root, 'self'));
    symlinkSync('/nowhere/at/all', join(root, 'dangling'));
    expectTrusted(await refusal(root));
  });
});

describe('an entry', () => {
  const code = (text: string): PluginFiles => ({ files: { 'index.js': text } });
  const exported = `export const backend = { contract: 1, kind: 'provisioner', name: 'demo', create: async () => ({}) };`;

  it('gives its backend', async () => {
    expect(await loadBackend(await read({}))).toMatchObject({ kind: 'provisioner', name: 'demo' });
  });

  it.each([
    ['throws', 'throw new Error("boom")', 'it fails when it is loaded: boom'],
    ['is no JavaScript', 'export const =', 'it fails when it is loaded'],
    ['exports nothing', 'export {}', 'it exports no backend'],
    ['exports null', 'export const backend = null', 'it exports no backend'],
    ['exports no create', exported.replace('async () => ({})', '1'), 'it exports no backend'],
    ['exports another name', exported.replace("'demo'", "'else'"), 'name else, not demo'],
    ['exports another kind', exported.replace("'provisioner'", "'network'"), 'kind network, not provisioner'],
    ['exports another contract', exported.replace('contract: 1', 'contract: 2'), 'contract 2, not 1'],
  ])('that %s is refused with the package’s name', async (_case, source, reason) => {
    const loading = loadBackend(await read(code(source)));
    await expect(loading).rejects.toThrow(reason);
    await expect(loading).rejects.toThrow('@x/demo');
  });
});
