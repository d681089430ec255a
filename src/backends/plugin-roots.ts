/**
 * Where packages stand that may hold a backend, as oclif's list of the user's plugins names them. Reads that one file; a
 * package that is listed and gone is listed all the same, so that its absence can be told.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorLine, systemCode } from '@eitri/core/kit';

export type PluginOrigin = 'checkout' | 'installed' | 'linked' | 'core';

/** A package that may hold a backend. */
export interface PluginRoot {
  readonly root: string;
  readonly origin: PluginOrigin;
  /** The name under which it is listed; absent: none is, and its own package.json has it. */
  readonly listedAs?: string;
  /** What the operator asked for at `plugins install`: a tag or a range, or where the package came from. */
  readonly tag?: string;
  readonly url?: string;
  /** Why nothing can be known of it, as a sentence with what to do. */
  readonly trouble?: string;
}

/**
 * The plugins that `plugins install` and `plugins link` have put into oclif's data folder. A list that can't be read is
 * one entry with its trouble: it is not the same as no plugin.
 */
export async function listPlugins(dataDir: string): Promise<readonly PluginRoot[]> {
  const path = join(dataDir, 'package.json');
  let content: unknown;
  try {
    content = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    const next = 'put it right, or empty it with "eitri-agent plugins reset --hard" and install all of them again';
    const trouble = `their list ${path} can't be read (${errorLine(error)}); ${next}`;
    return [{ root: path, origin: 'installed', listedAs: '(all of the user)', trouble }];
  }
  const listed = fieldOf(fieldOf(content, 'oclif'), 'plugins');
  const roots = Array.isArray(listed) ? listed.map((entry) => rootOf(entry, dataDir)) : [];
  return roots.filter((root) => root !== undefined);
}

/** An entry that says nothing names nothing: it is passed over, as oclif does it. */
function rootOf(entry: unknown, dataDir: string): PluginRoot | undefined {
  const name = typeof entry === 'string' ? entry : textOf(entry, 'name');
  if (name === undefined) return undefined;
  const root = textOf(entry, 'root');
  if (textOf(entry, 'type') === 'link') {
    return root === undefined ? undefined : { root, origin: 'linked', listedAs: name };
  }
  const tag = textOf(entry, 'tag');
  const url = textOf(entry, 'url');
  return {
    root: join(dataDir, 'node_modules', name),
    origin: 'installed',
    listedAs: name,
    ...(tag === undefined ? {} : { tag }),
    ...(url === undefined ? {} : { url }),
  };
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

function textOf(value: unknown, name: string): string | undefined {
  const field = fieldOf(value, name);
  return typeof field === 'string' && field !== '' ? field : undefined;
}
