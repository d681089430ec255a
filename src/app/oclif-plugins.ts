/**
 * Which of the user's plugins oclif gets to see.
 *
 * By itself oclif loads whatever its data folder lists: it imports commands of packages that anybody may have written to,
 * lets a plugin stand in for a part of the agent itself, prints a stack for what is broken, and is silent about what is
 * gone. So it is told to load none, and handed here those that were judged fit, as what `readCommandPart` describes.
 */
import { Config, Plugin } from '@oclif/core';
import type { PluginPackage } from '../backends/index.js';

/** The configuration with the commands of these plugins. */
export async function withPlugins(core: Config, packages: readonly PluginPackage[]): Promise<Config> {
  const plugins = new Map(core.plugins);
  for (const { packageName, root, origin, refused, commands, listed } of packages) {
    if (refused !== undefined || !commands) continue;
    const plugin = new Plugin({
      root,
      type: origin === 'linked' ? 'link' : 'user',
      ...(listed.tag === undefined ? {} : { tag: listed.tag }),
      ...(listed.url === undefined ? {} : { url: listed.url }),
    });
    await plugin.load();
    plugin.hooks = {};
    plugins.set(packageName, plugin);
  }
  return plugins.size === core.plugins.size ? core : await Config.load({ root: core.root, plugins });
}
