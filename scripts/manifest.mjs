// Writes oclif.manifest.json from the built commands, or with --check says whether the one in the tree is stale.
// oclif's own command prints a line, has no --check, writes no final newline, and trips over a checkout without commands.
// tsyringe throws unless reflect-metadata came first.
import 'reflect-metadata';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Plugin, settings } from '@oclif/core';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = new URL('../oclif.manifest.json', import.meta.url);
settings.enableAutoTranspile = false;
mkdirSync(new URL('../dist/commands', import.meta.url), { recursive: true });

const plugin = new Plugin({
  root,
  type: 'core',
  ignoreManifest: true,
  errorOnManifestCreate: true,
  respectNoCacheDefault: true,
});
await plugin.load();
// Sorted: the order in which a file system lists a folder must not make the manifest look stale.
const commands = Object.fromEntries(
  Object.entries(plugin.manifest.commands).sort(([a], [b]) => (a < b ? -1 : Number(a > b))),
);
const fresh = `${JSON.stringify({ commands, version: plugin.manifest.version }, null, 2)}\n`;

if (process.argv.includes('--check')) {
  let committed = '';
  try {
    committed = readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  if (committed !== fresh) {
    console.error('oclif.manifest.json is stale: run `npm run build && npm run manifest` and commit the result');
    process.exitCode = 1;
  }
} else {
  writeFileSync(file, fresh);
}
