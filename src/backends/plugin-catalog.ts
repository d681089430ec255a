/**
 * Which backends this host has, found out without running any of their code: from the `eitri` block of each package.json.
 *
 * Owns reading and judging. A package that is broken in any way is an entry with a reason, never an exception: the other
 * backends, and the commands that would help to mend it, go on.
 */
import { readFile, stat } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { CONTRACT_VERSION } from '@eitri/core/contracts';
import type { BackendManifest, HostFacts } from '@eitri/core/contracts';
import { errorLine } from '@eitri/core/kit';
import { z } from 'zod';

export type PluginOrigin = 'checkout' | 'installed' | 'linked' | 'core';

/** A package that may hold a backend. */
export interface PluginRoot {
  readonly root: string;
  readonly origin: PluginOrigin;
}

export interface CatalogEntry {
  readonly root: string;
  readonly origin: PluginOrigin;
  readonly packageName: string;
  readonly version: string;
  /** Absent when the block could not be understood. */
  readonly manifest?: BackendManifest;
  /** Why it is not used, as a sentence; absent: it can be chosen. */
  readonly refused?: string;
}

/** What the host has, of what a backend may need. */
export interface HostAbilities {
  readonly facts: HostFacts;
  readonly kvm: boolean;
}

const manifestSchema = z.object({
  contract: z.number().int(),
  kind: z.enum(['provisioner', 'network']),
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/),
  os: z.array(z.string()).min(1),
  needs: z
    .object({
      arch: z.array(z.string()).exactOptional(),
      kvm: z.boolean().exactOptional(),
      network: z.boolean().exactOptional(),
    })
    .default({}),
  entry: z.string().min(1),
});

const packageSchema = z.object({
  name: z.string().default('(unnamed)'),
  version: z.string().default('0.0.0'),
  eitri: z.unknown().optional(),
});

/** Reads all roots; those without an `eitri` block are no backends and left out. Sorted by package name. */
export async function readCatalog(roots: readonly PluginRoot[], host: HostAbilities): Promise<readonly CatalogEntry[]> {
  const read = await Promise.all(roots.map((root) => readEntry(root, host)));
  const entries = read.filter((entry) => entry !== undefined);
  // A user's own copy of a package stands for the one that came with the agent.
  const byName = new Map<string, CatalogEntry>();
  for (const entry of entries) {
    const known = byName.get(entry.packageName);
    if (known === undefined || rank(entry) > rank(known)) byName.set(entry.packageName, entry);
  }
  const usable = [...byName.values()].sort((a, b) => (a.packageName < b.packageName ? -1 : 1));
  const network = usable.some((entry) => entry.refused === undefined && entry.manifest?.kind === 'network');
  return usable.map((entry) => {
    if (entry.refused !== undefined || entry.manifest?.needs.network !== true || network) return entry;
    return { ...entry, refused: 'it needs a network plugin, and none is installed' };
  });
}

const ORIGINS: readonly PluginOrigin[] = ['core', 'checkout', 'installed', 'linked'];
const rank = (entry: CatalogEntry): number => ORIGINS.indexOf(entry.origin);

async function readEntry(at: PluginRoot, host: HostAbilities): Promise<CatalogEntry | undefined> {
  const of = { root: at.root, origin: at.origin };
  let packageName = at.root;
  let version = '0.0.0';
  try {
    const parsed = packageSchema.parse(JSON.parse(await readFile(join(at.root, 'package.json'), 'utf8')));
    if (parsed.eitri === undefined) return undefined;
    packageName = parsed.name;
    version = parsed.version;
    const block = manifestSchema.safeParse(parsed.eitri);
    if (!block.success) {
      const issue = block.error.issues[0];
      const path = ['eitri', ...(issue?.path ?? [])].join('.');
      return {
        ...of,
        packageName,
        version,
        refused: `its package.json is wrong at ${path}: ${issue?.message ?? 'unknown'}`,
      };
    }
    const manifest: BackendManifest = block.data;
    const refused = refusal(manifest, host) ?? (await entryRefusal(at.root, manifest, host.facts.root));
    return { ...of, packageName, version, manifest, ...(refused === undefined ? {} : { refused }) };
  } catch (error) {
    return { ...of, packageName, version, refused: `its package.json can't be read: ${errorLine(error)}` };
  }
}

function refusal(manifest: BackendManifest, { facts, kvm }: HostAbilities): string | undefined {
  if (manifest.contract !== CONTRACT_VERSION) {
    return `it was built for contract ${manifest.contract}, and this agent speaks ${CONTRACT_VERSION}: install the version that fits`;
  }
  if (!manifest.os.includes(facts.os)) return `it runs on ${manifest.os.join(', ')}, and this host is ${facts.os}`;
  const { arch } = manifest.needs;
  if (arch !== undefined && !arch.includes(facts.arch)) {
    return `it needs ${arch.join(' or ')}, and this host is ${facts.arch}`;
  }
  if (manifest.needs.kvm === true && !kvm) return 'it needs /dev/kvm, which this host does not offer';
  return undefined;
}

/** The entry must be there; and what root runs must be root's own, and nobody else's to write. */
async function entryRefusal(root: string, manifest: BackendManifest, asRoot: boolean): Promise<string | undefined> {
  const entry = resolve(root, manifest.entry);
  if (!entry.startsWith(resolve(root) + sep)) return `its entry ${manifest.entry} leads out of the package`;
  for (const path of [root, join(root, 'package.json'), entry]) {
    try {
      const found = await stat(path);
      if (!asRoot) continue;
      if (found.uid !== 0) return `${path} is not owned by root, and this agent runs as root`;
      if ((found.mode & 0o022) !== 0) return `${path} is writable by others, and this agent runs as root`;
    } catch {
      return `its entry ${manifest.entry} is missing: build or install it again`;
    }
  }
  return undefined;
}
