/**
 * The plugins of this machine, seen from outside a run: what is there, what of it is off, and why. Starts none of their
 * code in this process.
 */
import { open, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HostFacts, HostOs } from '@eitri/core/contracts';
import { listPlugins, PluginMemory, probeEntry, readPackages } from '../backends/index.js';
import type { HostAbilities, PluginPackage, PluginRoot } from '../backends/index.js';
import type { Places } from './places.js';
import { previewChoice } from './plugin-choice.js';
import { listingOf, type PluginListing } from './plugin-listing.js';

/** The agent's own package. */
export const AGENT_ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** Where oclif keeps what belongs to its user. */
export interface PluginFolders {
  readonly dataDir: string;
  readonly cacheDir: string;
}

/** What the user installed and linked. */
export const installedPlugins = ({ dataDir }: Pick<PluginFolders, 'dataDir'>): Promise<readonly PluginRoot[]> =>
  listPlugins(dataDir);

/** In a checkout, its `plugins/*`. */
export async function checkoutPlugins(): Promise<readonly PluginRoot[]> {
  const folder = join(AGENT_ROOT, 'plugins');
  const found = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = found.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return names.sort().map((name) => ({ root: join(folder, name), origin: 'checkout' }));
}

/** oclif would let a user's package of such a name stand in for the agent's own. */
async function ownParts(): Promise<readonly string[]> {
  const text = await readFile(join(AGENT_ROOT, 'package.json'), 'utf8');
  const { name, oclif } = JSON.parse(text) as { readonly name: string; readonly oclif: { plugins: readonly string[] } };
  return [name, ...oclif.plugins];
}

/** Only opening it shows a device without its driver. */
export async function kvmOpens(): Promise<boolean> {
  try {
    await (await open('/dev/kvm', 'r+')).close();
    return true;
  } catch {
    return false;
  }
}

export const hostAbilities = async (
  facts: HostAbilities['facts'] = {
    os: process.platform === 'darwin' ? 'darwin' : 'linux',
    arch: process.arch as HostFacts['arch'],
    root: process.getuid?.() === 0,
  },
): Promise<HostAbilities> => ({ facts, kvm: await kvmOpens() });

/**
 * Reads and judges what the user installed and linked, and a checkout's own; and tries the entries of what looks whole,
 * each in a process of its own: all of them, or what the user brought and was never tried with this content. What came of
 * it is remembered for the next command.
 */
export async function surveyPlugins(
  listed: readonly PluginRoot[],
  { cacheDir }: Pick<PluginFolders, 'cacheDir'>,
  { tryAll, signal }: { readonly tryAll: boolean; readonly signal: AbortSignal },
): Promise<readonly PluginPackage[]> {
  const read = await readPackages([...(await checkoutPlugins()), ...listed], await hostAbilities());
  const own = await ownParts();
  const packages = read.map((one) =>
    own.includes(one.packageName) ? { ...one, refused: 'it has the name of a part of the agent itself' } : one,
  );
  const memory = await PluginMemory.open(join(cacheDir, 'plugins.json'));
  const untried = packages.filter((one) => {
    if (one.manifest === undefined || one.refused !== undefined) return false;
    return tryAll || (one.origin !== 'checkout' && memory.recall(one) === undefined);
  });
  if (untried.length > 0) {
    // Loaded here: most commands have nothing to try.
    const { ExecaRunner } = await import('../host/runner.js');
    const script = join(AGENT_ROOT, 'bin', 'probe-plugin.js');
    const tools = { runner: new ExecaRunner(), node: process.execPath, script };
    for (const one of untried) memory.note(one, await probeEntry(one, tools, signal));
    await memory.save();
  }
  return packages.map((one) => {
    const refused = one.refused ?? (one.manifest === undefined ? undefined : memory.recall(one)?.refused);
    return refused === undefined ? one : { ...one, refused };
  });
}

/** Looks at all of them anew. */
export async function listPluginsOf(
  folders: PluginFolders,
  { places, os, signal }: { readonly places: Places; readonly os: HostOs; readonly signal: AbortSignal },
): Promise<PluginListing> {
  const packages = await surveyPlugins(await installedPlugins(folders), folders, { tryAll: true, signal });
  return listingOf(packages, await previewChoice(packages, places, os, { backend: undefined, network: undefined }));
}
