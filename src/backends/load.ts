/**
 * Loads a chosen backend's entry. What it exports is checked before it is believed; all that goes wrong is said with the
 * package's name.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BackendManifest, BackendPlugin } from '@eitri/core/contracts';
import { errorLine, permanent } from '@eitri/core/kit';
import type { CatalogEntry } from './plugin-catalog.js';

/** Where node finds the entry. */
export const entryUrl = (root: string, manifest: BackendManifest): string =>
  pathToFileURL(resolve(root, manifest.entry)).href;

/** What of an entry's `backend` decides whether it is one. */
export interface ExportedBackend {
  readonly contract?: unknown;
  readonly kind?: unknown;
  readonly name?: unknown;
  readonly create?: unknown;
}

export const throwsSentence = (what: string): string => `it fails when it is loaded: ${what}`;

/** Why what the entry exports as `backend` is not what its package.json declares; undefined: it is. */
export function exportRefusal(backend: ExportedBackend | undefined, manifest: BackendManifest): string | undefined {
  if (backend?.create === undefined) {
    return 'it exports no backend: its entry must export "backend" with a create function';
  }
  for (const field of ['contract', 'kind', 'name'] as const) {
    if (backend[field] !== manifest[field]) {
      return `it exports another backend than its package.json declares: ${field} ${String(backend[field])}, not ${manifest[field]}`;
    }
  }
  return undefined;
}

/** Imports the entry and gives its `backend`. Rejects, permanent with `BackendMissing`, when it is none. */
export async function loadBackend(entry: CatalogEntry): Promise<BackendPlugin> {
  const { manifest, packageName, root } = entry;
  const refuse = (why: string): Error =>
    permanent(`plugin ${packageName} can't be used: ${why}`, { code: 'BackendMissing' });
  if (manifest === undefined) throw refuse('it has no eitri block');
  let module: { readonly backend?: unknown };
  try {
    module = (await import(entryUrl(root, manifest))) as { readonly backend?: unknown };
  } catch (error) {
    throw refuse(throwsSentence(errorLine(error)));
  }
  const { backend } = module;
  const refused = exportRefusal(isBackend(backend) ? backend : undefined, manifest);
  if (refused !== undefined) throw refuse(refused);
  return backend as BackendPlugin;
}

const isBackend = (backend: unknown): backend is ExportedBackend =>
  typeof backend === 'object' && backend !== null && 'create' in backend && typeof backend.create === 'function';
