import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listPlugins } from '../../../src/backends/index.js';
import { tempFolder } from '../../support/temp.js';

describe('the plugins that the user has', () => {
  it('are none where no list was ever made', async () => {
    expect(await listPlugins(join(tempFolder(), 'never'))).toEqual([]);
  });

  it('are what the list names, whether it is there or not', async () => {
    const folder = tempFolder();
    const plugins = [
      '@x/old-style',
      { name: '@x/by-range', type: 'user', tag: '^1.0.0' },
      { name: '@x/by-file', type: 'user', url: 'file:x.tgz' },
      { name: '@x/linked', type: 'link', root: '/home/me/linked' },
      { name: '@x/nowhere', type: 'link' },
      7,
      {},
    ];
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ oclif: { plugins } }));
    const modules = join(folder, 'node_modules');
    expect(await listPlugins(folder)).toEqual([
      { root: join(modules, '@x/old-style'), origin: 'installed', listedAs: '@x/old-style' },
      { root: join(modules, '@x/by-range'), origin: 'installed', listedAs: '@x/by-range', tag: '^1.0.0' },
      { root: join(modules, '@x/by-file'), origin: 'installed', listedAs: '@x/by-file', url: 'file:x.tgz' },
      { root: '/home/me/linked', origin: 'linked', listedAs: '@x/linked' },
    ]);
  });

  it.each(['{}', '[]', '{"oclif":{}}', '{"oclif":{"plugins":"all"}}'])(
    'are none where %s is the list',
    async (text) => {
      const folder = tempFolder();
      writeFileSync(join(folder, 'package.json'), text);
      expect(await listPlugins(folder)).toEqual([]);
    },
  );

  it('are not taken for none where the list is torn', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'package.json'), '{"oclif":');
    const [only] = await listPlugins(folder);
    expect(only?.trouble).toContain(join(folder, 'package.json'));
    expect(only?.trouble).toContain('plugins reset --hard');
  });
});
