// Removes what tsc wrote for sources that are gone: tsc never does, and a command deleted yesterday would stay a command.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const foldersIn = (path) =>
  existsSync(join(root, path))
    ? readdirSync(join(root, path), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => entry.name)
    : [];

/** Pairs of a folder of sources and the folder that tsc fills from it, as the tsconfigs say. */
const projects = [
  ['src', 'dist'],
  ...['core', 'protocol', 'conformance'].map((name) => [`src/${name}`, `src/${name}/dist`]),
  ...foldersIn('plugins').map((name) => [`plugins/${name}/src`, `plugins/${name}/dist`]),
  ['server/src', 'server/dist'],
];

for (const [source, built] of projects) {
  const from = join(root, built);
  if (!existsSync(from)) continue;
  for (const name of readdirSync(from, { recursive: true })) {
    const stem = /^(.*?)(\.d\.ts|\.js)(\.map)?$/.exec(name)?.[1];
    if (stem === undefined || existsSync(join(root, source, `${stem}.ts`))) continue;
    rmSync(join(from, name));
    console.error(`removed ${relative(root, join(from, name))}: it has no source any more`);
  }
}
