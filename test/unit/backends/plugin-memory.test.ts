import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PluginMemory, readPackages, type PluginPackage } from '../../../src/backends/index.js';
import { writePlugin } from '../../support/plugin-folder.js';
import { tempFolder } from '../../support/temp.js';

async function somePackage(): Promise<PluginPackage> {
  const root = writePlugin(join(tempFolder(), 'plugin'));
  const host = { facts: { os: 'linux', arch: 'x64', root: false }, kvm: false } as const;
  const [found] = await readPackages([{ root, origin: 'linked' }], host);
  if (found === undefined) throw new Error('left out');
  return found;
}

describe('what loading a plugin has shown', () => {
  it('is known to the next command, good or bad, until the package has another content', async () => {
    const path = join(tempFolder(), 'deep/down/plugins.json');
    const [good, bad] = [await somePackage(), await somePackage()];
    const memory = await PluginMemory.open(path);
    expect(memory.recall(good)).toBeUndefined();
    memory.note(good, undefined);
    memory.note(bad, 'it fails when it is loaded: boom');
    await memory.save();

    const next = await PluginMemory.open(path);
    expect(next.recall(good)?.refused).toBeUndefined();
    expect(next.recall(good)).toBeDefined();
    expect(next.recall(bad)?.refused).toBe('it fails when it is loaded: boom');
    expect(next.recall({ ...bad, fingerprint: 'another' })).toBeUndefined();
  });

  it.each(['', '{"version":1,', '[]', 'null', '{"version":2,"plugins":{}}', '{"version":1,"plugins":{"/a":1}}'])(
    'is nothing where the file holds %j',
    async (text) => {
      const path = join(tempFolder(), 'plugins.json');
      writeFileSync(path, text);
      expect((await PluginMemory.open(path)).recall(await somePackage())).toBeUndefined();
    },
  );

  it('is not kept, and nothing is said, where the folder can not be written', async () => {
    const path = join(tempFolder(), 'plugins.json');
    mkdirSync(path);
    const memory = await PluginMemory.open(path);
    memory.note(await somePackage(), undefined);
    await expect(memory.save()).resolves.toBeUndefined();
  });
});
