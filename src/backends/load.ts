/**
 * Loads a chosen backend's entry. What it exports is checked before it is believed; all that goes wrong is said with the
 * package's name.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BackendPlugin } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import type { CatalogEntry } from './plugin-catalog.js';

/** Imports the entry and gives its `backend`. Rejects, permanent with `BackendMissing`, when it is none. */
export async function loadBackend(entry: CatalogEntry): Promise<BackendPlugin> {
  const { manifest, packageName, root } = entry;
  if (manifest === undefined) throw permanent(`plugin ${packageName} has no eitri block`, { code: 'BackendMissing' });
  let module: unknown;
  try {
    module = await import(pathToFileURL(resolve(root, manifest.entry)).href);
  } catch (cause) {
    throw permanent(`plugin ${packageName} fails when it is loaded`, { cause, code: 'BackendMissing' });
  }
  const backend = (module as { backend?: Partial<BackendPlugin> }).backend;
  if (typeof backend !== 'object' || typeof backend.create !== 'function') {
    throw permanent(
      `plugin ${packageName} exports no backend: its entry must export "backend" with a create function`,
      {
        code: 'BackendMissing',
      },
    );
  }
  if (backend.kind !== manifest.kind || backend.name !== manifest.name || backend.contract !== manifest.contract) {
    throw permanent(`plugin ${packageName} exports another backend than its package.json declares`, {
      code: 'BackendMissing',
    });
  }
  return backend as BackendPlugin;
}
