/**
 * Which plugins this host has, found out without running any of their code: from the `eitri` block of each package.json.
 *
 * Owns reading and judging. A package that is broken in any way is an entry with a reason, never an exception: the other
 * plugins, and the commands that would help to mend it, go on. The reasons are listed in docs/plugins.md.
 */
import { readFile, realpath, stat } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { CONTRACT_VERSION } from '@eitri/core/contracts';
import type { BackendManifest, HostFacts } from '@eitri/core/contracts';
import { errorLine, systemCode } from '@eitri/core/kit';
import { readCommandPart } from './command-part.js';
import { parseEitriBlock, parsePackageJson, WrongField, type PackageJson } from './package-json.js';
import type { PluginOrigin, PluginRoot } from './plugin-roots.js';
import { readTree, type PluginTree } from './plugin-tree.js';

/** A package that the agent may load something of: a backend, or commands alone. */
export interface PluginPackage {
  /** With symbolic links resolved: what was judged is what is loaded. */
  readonly root: string;
  readonly origin: PluginOrigin;
  readonly packageName: string;
  readonly version: string;
  /** Absent: it has no `eitri` block, or one that could not be understood. */
  readonly manifest?: BackendManifest;
  /** Why nothing of it is used, as a sentence; absent: it can be used. */
  readonly refused?: string;
  /** Set beside `refused`: nothing is wrong with the package, this host is not one that it runs on. */
  readonly unfit?: true;
  /** It has commands of its own that can be typed. */
  readonly commands: boolean;
  /** What of it is left out though it can be used, each a sentence. */
  readonly notes: readonly string[];
  /** Tells two contents of one package apart. */
  readonly fingerprint: string;
  readonly listed: PluginRoot;
}

/** A package that is a backend, or was to be one. */
export type CatalogEntry = Pick<
  PluginPackage,
  'root' | 'origin' | 'packageName' | 'version' | 'manifest' | 'refused' | 'unfit'
>;

/** What the host has, of what a backend may need. */
export interface HostAbilities {
  readonly facts: Pick<HostFacts, 'os' | 'arch' | 'root'>;
  readonly kvm: boolean;
}

/** The packages among them that are backends, or were to be. Sorted by package name. */
export async function readCatalog(
  roots: readonly PluginRoot[],
  host: HostAbilities,
): Promise<readonly PluginPackage[]> {
  return (await readPackages(roots, host)).filter(
    ({ manifest, refused }) => manifest !== undefined || refused !== undefined,
  );
}

/** Reads and judges all of them. Never rejects. Sorted by package name. */
export async function readPackages(
  roots: readonly PluginRoot[],
  host: HostAbilities,
): Promise<readonly PluginPackage[]> {
  const read = await Promise.all(roots.map((root) => readPackage(root, host)));
  // A user's own copy of a package stands for the one that came with the checkout.
  const byName = new Map<string, PluginPackage>();
  for (const one of read) {
    const known = byName.get(one.packageName);
    if (known === undefined || rank(one) > rank(known)) byName.set(one.packageName, one);
  }
  const packages = [...byName.values()].sort((a, b) => (a.packageName < b.packageName ? -1 : 1));
  const network = packages.some(({ refused, manifest }) => refused === undefined && manifest?.kind === 'network');
  return packages.map((one) => {
    if (one.refused !== undefined || one.manifest?.needs.network !== true || network) return one;
    return { ...one, refused: 'it needs a network plugin, and none can be used', unfit: true };
  });
}

const ORIGINS: readonly PluginOrigin[] = ['core', 'checkout', 'installed', 'linked'];
const rank = ({ origin }: PluginPackage): number => ORIGINS.indexOf(origin);

async function readPackage(listed: PluginRoot, host: HostAbilities): Promise<PluginPackage> {
  const { origin } = listed;
  const nothing: PluginPackage = {
    root: listed.root,
    origin,
    packageName: listed.listedAs ?? listed.root,
    version: '0.0.0',
    commands: false,
    notes: [],
    fingerprint: '',
    listed,
  };
  const broken = (refused: string, of: Partial<PluginPackage> = {}): PluginPackage => ({ ...nothing, ...of, refused });
  if (listed.trouble !== undefined) return broken(listed.trouble);
  let root: string;
  try {
    root = await realpath(listed.root);
  } catch (error) {
    return broken(goneSentence(listed, error));
  }
  let content: PackageJson;
  try {
    content = parsePackageJson(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
  } catch (error) {
    return broken(`its package.json ${packageTrouble(error)}; ${mending(listed)}`, { root });
  }
  let tree: PluginTree;
  try {
    tree = await readTree(root);
  } catch (error) {
    return broken(`its folder can't be read: ${errorLine(error)}`, { root });
  }
  const of: PluginPackage = {
    ...nothing,
    root,
    packageName: content.name ?? nothing.packageName,
    version: content.version,
    ...(await readCommandPart(root, content.version, content.oclif)),
    fingerprint: `${content.version} ${tree.newestMs} ${tree.files}`,
  };
  const untrusted = host.facts.root && tree.untrusted !== undefined ? { refused: tree.untrusted } : {};
  if (content.eitri === undefined) return { ...of, ...untrusted };
  let manifest: BackendManifest;
  try {
    manifest = parseEitriBlock(content.eitri);
  } catch (error) {
    return broken(`its package.json ${packageTrouble(error)}`, of);
  }
  return {
    ...of,
    manifest,
    ...(await brokenPart(root, manifest, listed)),
    ...untrusted,
    ...contractPart(manifest),
    ...unfitPart(manifest, host),
  };
}

function packageTrouble(error: unknown): string {
  if (error instanceof WrongField) return `is wrong${error.message}`;
  return systemCode(error) === 'ENOENT' ? 'is missing' : `can't be read (${errorLine(error)})`;
}

type Judgement = Pick<PluginPackage, 'refused' | 'unfit'>;

function contractPart({ contract }: BackendManifest): Judgement {
  if (contract === CONTRACT_VERSION) return {};
  return {
    refused: `it was built for contract ${contract}, and this agent speaks ${CONTRACT_VERSION}: install the version that fits`,
  };
}

function unfitPart({ os, needs }: BackendManifest, { facts, kvm }: HostAbilities): Judgement {
  const unfit = (refused: string): Judgement => ({ refused, unfit: true });
  if (!os.includes(facts.os)) return unfit(`it runs on ${os.join(' and ')}, and this host is ${facts.os}`);
  const { arch } = needs;
  if (arch?.includes(facts.arch) === false)
    return unfit(`it needs ${arch.join(' or ')}, and this host is ${facts.arch}`);
  if (needs.kvm === true && !kvm) return unfit('it needs /dev/kvm, which this host does not offer');
  return {};
}

/** Its entry must be there, in the package. */
async function brokenPart(root: string, manifest: BackendManifest, listed: PluginRoot): Promise<Judgement> {
  const entry = resolve(root, manifest.entry);
  if (!entry.startsWith(root + sep)) return { refused: `its entry ${manifest.entry} leads out of the package` };
  const found = await stat(entry).catch(() => undefined);
  if (found?.isFile() === true) return {};
  return { refused: `its entry ${manifest.entry} is missing; ${mending(listed)}` };
}

const goneSentence = (listed: PluginRoot, error: unknown): string =>
  systemCode(error) === 'ENOENT'
    ? `its folder ${listed.root} is gone; ${mending(listed)}`
    : `its folder ${listed.root} can't be entered: ${errorLine(error)}`;

/** What to do about a package that is not whole. */
function mending({ origin, listedAs, root }: PluginRoot): string {
  switch (origin) {
    case 'installed':
      return `type: eitri-agent plugins install ${listedAs ?? root}`;
    case 'linked':
      return `build it, link it again, or type: eitri-agent plugins uninstall ${listedAs ?? root}`;
    case 'checkout':
      return 'type: npm run build';
    case 'core':
      return 'install the agent again';
  }
}
