/**
 * What loading plugins has shown, kept for the commands that do not load any: a file in the user's cache folder, by the
 * root and the fingerprint of each. A file that is lost or can't be read or written costs another look, and nothing else.
 */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { readIfThere, writeAtomically } from '../host/atomic-file.js';
import type { PluginPackage } from './plugin-catalog.js';

const MAX_BYTES = 2 ** 20;
const MAX_PLUGINS = 200;

interface Remembered {
  readonly fingerprint: string;
  /** Absent: its entry is what it should be. */
  readonly refused?: string;
}

export class PluginMemory {
  private constructor(
    private readonly path: string,
    private readonly plugins: Map<string, Remembered>,
  ) {}

  static async open(path: string): Promise<PluginMemory> {
    const text = await readIfThere(path, MAX_BYTES).catch(() => undefined);
    return new PluginMemory(path, new Map(text === undefined ? [] : parse(text)));
  }

  /** Undefined: this content of it was never tried. */
  readonly recall = ({ root, fingerprint }: PluginPackage): { readonly refused?: string } | undefined => {
    const known = this.plugins.get(root);
    return known?.fingerprint === fingerprint ? known : undefined;
  };

  readonly note = ({ root, fingerprint }: PluginPackage, refused: string | undefined): void => {
    this.plugins.set(root, { fingerprint, ...(refused === undefined ? {} : { refused }) });
  };

  readonly save = async (): Promise<void> => {
    const kept = Object.fromEntries([...this.plugins].slice(-MAX_PLUGINS));
    try {
      await mkdir(dirname(this.path), { recursive: true });
      await writeAtomically(this.path, `${JSON.stringify({ version: 1, plugins: kept })}\n`);
    } catch {
      // Another user's folder, or a full disk: the next command looks for itself.
    }
  };
}

/** Nothing of a file that another version wrote, or that is torn. */
function parse(text: string): readonly (readonly [string, Remembered])[] {
  try {
    const { version, plugins } = JSON.parse(text) as { readonly version: unknown; readonly plugins: object };
    return version === 1 ? Object.entries(plugins).filter(isRemembered) : [];
  } catch {
    return [];
  }
}

const isRemembered = (entry: [string, unknown]): entry is [string, Remembered] => {
  const [, value] = entry;
  if (typeof value !== 'object' || value === null || !('fingerprint' in value)) return false;
  return typeof value.fingerprint === 'string' && (!('refused' in value) || typeof value.refused === 'string');
};
