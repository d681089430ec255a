/**
 * What of a plugin's own commands and hooks the agent uses: commands that its `oclif.manifest.json` lists, so that none of
 * its code runs before one of them is typed, and no hooks, which would run at every start of every command.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorLine, systemCode } from '@eitri/core/kit';

export interface CommandPart {
  /** It has commands that can be typed. */
  readonly commands: boolean;
  /** What of it is left out, each a sentence. */
  readonly notes: readonly string[];
}

const MANIFEST = 'oclif.manifest.json';

/** `oclif` is that block of its package.json. Never rejects. */
export async function readCommandPart(root: string, version: string, oclif: unknown): Promise<CommandPart> {
  const hooks = Object.keys(objectIn(oclif, 'hooks'));
  const notes = hooks.length === 0 ? [] : [`its hooks are not run (${hooks.join(', ')}): a backend needs none`];
  const trouble = await manifestTrouble(root, version);
  if (trouble === undefined) return { commands: true, notes };
  // Without commands it needs no manifest.
  if (typeof oclif !== 'object' || oclif === null || !('commands' in oclif)) return { commands: false, notes };
  return { commands: false, notes: [`its commands are off: ${trouble}; "npx oclif manifest" makes it`, ...notes] };
}

async function manifestTrouble(root: string, version: string): Promise<string | undefined> {
  let manifest: unknown;
  try {
    manifest = JSON.parse(await readFile(join(root, MANIFEST), 'utf8'));
  } catch (error) {
    return systemCode(error) === 'ENOENT'
      ? `it has no ${MANIFEST}`
      : `its ${MANIFEST} can't be read (${errorLine(error)})`;
  }
  const made =
    typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : undefined;
  const commands = Object.values(objectIn(manifest, 'commands'));
  if (commands.length === 0) return `its ${MANIFEST} lists none`;
  // oclif would pass over it, and import the commands instead.
  if (made !== version) return `its ${MANIFEST} is of version ${String(made)}`;
  const whole = commands.every(
    (one) => typeof one === 'object' && one !== null && 'isESM' in one && 'relativePath' in one,
  );
  return whole ? undefined : `its ${MANIFEST} does not say where they stand`;
}

function objectIn(value: unknown, field: string): object {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
  return typeof found === 'object' && found !== null ? found : {};
}
