import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { HostFacts } from '@eitri/core/contracts';
import { loadBackend, readCatalog } from '../../../src/backends/index.js';
import type { CatalogEntry } from '../../../src/backends/index.js';
import { tempFolder } from '../../support/temp.js';

const facts: HostFacts = {
  os: 'linux', arch: 'x64', bootId: 'b', hostname: 'h', root: process.getuid?.() === 0, cpus: 1, memoryMib: 1024,
}; // prettier-ignore

const block = { contract: 1, kind: 'provisioner', name: 'demo', os: ['linux'], needs: {}, entry: './index.js' };
const code = `export const backend = { contract: 1, kind: 'provisioner', name: 'demo', create: async () => ({}) };`;

function plugin(eitri: unknown, options: { code?: string | undefined; name?: string; manifest?: string } = {}): string {
  const root = join(tempFolder(), 'plugin');
  mkdirSync(root);
  const text =
    options.manifest ?? JSON.stringify({ name: options.name ?? '@x/demo', version: '2.0.0', type: 'module', eitri });
  writeFileSync(join(root, 'package.json'), text);
  const source = 'code' in options ? options.code : code;
  if (source !== undefined) writeFileSync(join(root, 'index.js'), source);
  return root;
}

async function read(root: string, kvm = false): Promise<CatalogEntry> {
  const [entry] = await readCatalog([{ root, origin: 'installed' }], { facts, kvm });
  if (entry === undefined) throw new Error('left out');
  return entry;
}

describe('a package', () => {
  it('with a whole eitri block can be chosen', async () => {
    expect(await read(plugin(block))).toMatchObject({
      packageName: '@x/demo',
      version: '2.0.0',
      manifest: { name: 'demo' },
    });
    expect((await read(plugin(block))).refused).toBeUndefined();
  });

  it('without an eitri block is no backend', async () => {
    expect(await readCatalog([{ root: plugin(undefined), origin: 'installed' }], { facts, kvm: true })).toEqual([]);
  });

  it.each([
    ['another contract number', { ...block, contract: 99 }, 'contract 99'],
    ['another system', { ...block, os: ['darwin'] }, 'this host is linux'],
    ['another architecture', { ...block, needs: { arch: ['arm64'] } }, 'this host is x64'],
    ['KVM, which is not there', { ...block, needs: { kvm: true } }, '/dev/kvm'],
    ['a network plugin, which is not there', { ...block, needs: { network: true } }, 'network plugin'],
    ['an entry that is missing', { ...block, entry: './gone.js' }, './gone.js is missing'],
    ['an entry outside of the package', { ...block, entry: '../index.js' }, 'out of the package'],
    ['an unknown kind', { ...block, kind: 'thing' }, 'eitri.kind'],
    ['no name', { ...block, name: undefined }, 'eitri.name'],
    ['a block that is no object', 'yes', 'eitri'],
  ])('that names %s is refused with that reason', async (_case, eitri, reason) => {
    expect((await read(plugin(eitri))).refused).toContain(reason);
  });

  it('whose package.json is no JSON, or gone, is refused and does not disturb the others', async () => {
    const broken = plugin(undefined, { manifest: '{"name":' });
    const good = plugin(block);
    const entries = await readCatalog(
      [
        { root: broken, origin: 'linked' },
        { root: '/nowhere/at/all', origin: 'linked' },
        { root: good, origin: 'installed' },
      ],
      { facts, kvm: false },
    );
    expect(entries.filter((entry) => entry.refused !== undefined)).toHaveLength(2);
    expect(entries.find((entry) => entry.packageName === '@x/demo')?.refused).toBeUndefined();
  });

  it("of the user's own stands for the one of that name that came with the checkout", async () => {
    const own = plugin(block);
    const entries = await readCatalog(
      [
        { root: own, origin: 'installed' },
        { root: plugin(block), origin: 'checkout' },
      ],
      { facts, kvm: false },
    );
    expect(entries).toHaveLength(1);
    expect(entries[0]?.root).toBe(own);
  });

  it('that others may write is not loaded by root', async () => {
    const root = plugin(block);
    chmodSync(join(root, 'index.js'), 0o666);
    const [entry] = await readCatalog([{ root, origin: 'installed' }], { facts: { ...facts, root: true }, kvm: false });
    expect(entry?.refused).toMatch(/writable by others|not owned by root/);
    const [plain] = await readCatalog([{ root, origin: 'installed' }], {
      facts: { ...facts, root: false },
      kvm: false,
    });
    expect(plain?.refused).toBeUndefined();
  });
});

describe('an entry', () => {
  it('gives its backend', async () => {
    expect(await loadBackend(await read(plugin(block)))).toMatchObject({ kind: 'provisioner', name: 'demo' });
  });

  it.each([
    ['throws', 'throw new Error("boom")', 'fails when it is loaded'],
    ['exports nothing', 'export {}', 'exports no backend'],
    [
      'exports a backend without create',
      'export const backend = { contract: 1, kind: "provisioner", name: "demo" }',
      'exports no backend',
    ],
    ['exports another name', code.replace("'demo'", "'else'"), 'another backend'],
    ['exports another contract', code.replace('contract: 1', 'contract: 2'), 'another backend'],
  ])('that %s is refused with the package’s name', async (_case, source, reason) => {
    const loading = loadBackend(await read(plugin(block, { code: source })));
    await expect(loading).rejects.toThrow(reason);
    await expect(loading).rejects.toThrow('@x/demo');
  });
});
