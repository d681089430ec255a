/**
 * Plugins as they stand in a folder, for tests: a package with an `eitri` block and an entry, whole or broken.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A whole block, of a backend that no package of ours is. */
export const DEMO_BLOCK = {
  contract: 1,
  kind: 'provisioner',
  name: 'demo',
  os: ['linux', 'darwin'],
  needs: {},
  entry: './index.js',
};

/** What the packages of two backends that come later declare. */
export const CLOUDHV_BLOCK = {
  contract: 1,
  kind: 'provisioner',
  name: 'cloudhv',
  os: ['linux'],
  needs: { kvm: true, network: true },
  entry: './index.js',
};
export const VFKIT_BLOCK = { ...CLOUDHV_BLOCK, name: 'vfkit', os: ['darwin'], needs: {} };

export const entryOf = (block: { readonly contract: number; readonly kind: string; readonly name: string }): string =>
  `export const backend = { contract: ${block.contract}, kind: '${block.kind}', name: '${block.name}', create: async () => ({}) };\n`;

export interface PluginFiles {
  readonly name?: string;
  readonly version?: string;
  /** Undefined: the package is no backend. */
  readonly eitri?: unknown;
  readonly oclif?: unknown;
  /** Further files, by their path in the package. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Writes the package; its entry is what the block promises, unless the files have another. */
export function writePlugin(root: string, plugin: PluginFiles = {}): string {
  const { name = '@x/demo', version = '2.0.0', oclif = {} } = plugin;
  const eitri = 'eitri' in plugin ? plugin.eitri : DEMO_BLOCK;
  const block = { ...DEMO_BLOCK, ...(typeof eitri === 'object' ? eitri : {}) };
  const files = {
    'package.json': JSON.stringify({ name, version, type: 'module', eitri, oclif }),
    'index.js': entryOf(block),
    ...plugin.files,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}
