/**
 * The one door to `nft`: our table, whole or not at all.
 *
 * Drift is found by comparing what the kernel lists now with what it listed right after the table was made: no parser of
 * ours has to understand how this version of nft spells a rule. The listing is kept in a file with the text that it came
 * from, so that the next agent leaves alone what is right.
 */
import { rm } from 'node:fs/promises';
import type { NetworkHost } from '@eitri/core/contracts';
import { TABLE } from './names.js';
import { isObject, objectOf, textOf } from './parse.js';
import { REMOVAL } from './ruleset.js';
import { readIfThere, writeWhole } from './whole-file.js';

const LISTING_MODE = 0o600;
/** Behind the text of the rules, before their listing. No rule has such a line. */
const SEAM = '# as listed\n';

export class NftTable {
  constructor(
    private readonly host: NetworkHost,
    private readonly ruleset: string,
    /** Where the listing is kept; in a folder that goes with the boot, as the table does. */
    private readonly listingFile: string,
  ) {}

  /** Whether the table is as it was made. */
  async isTrue(signal: AbortSignal): Promise<boolean> {
    const asMade = await this.asMade();
    return asMade !== undefined && (await this.list(signal)) === asMade;
  }

  /** Hooks of other tables that drop what they are not told to let through, where packets are forwarded. */
  async droppers(signal: AbortSignal): Promise<readonly string[]> {
    const { stdout } = await this.host.runner.run({ command: 'nft', args: ['-j', 'list', 'chains'] }, signal);
    const found = parseForwardDrops(stdout);
    if (found === undefined) throw this.host.errors.retryable('nft -j list chains printed something unexpected');
    return found;
  }

  /** Makes the table true. Answers whether it had to be made. */
  async ensure(signal: AbortSignal): Promise<boolean> {
    if (await this.isTrue(signal)) return false;
    await this.apply(this.ruleset, signal);
    const listed = await this.list(signal);
    try {
      await writeWhole(this.listingFile, `${this.ruleset}${SEAM}${listed ?? ''}`, { mode: LISTING_MODE });
    } catch (cause) {
      throw this.host.errors.retryable(`write ${this.listingFile}`, { cause });
    }
    return true;
  }

  async remove(signal: AbortSignal): Promise<void> {
    await this.apply(REMOVAL, signal);
    await rm(this.listingFile, { force: true });
  }

  /** What the kernel listed for just these rules; undefined: nobody has made them here. */
  private async asMade(): Promise<string | undefined> {
    const kept = await readIfThere(this.listingFile);
    return kept?.startsWith(`${this.ruleset}${SEAM}`) === true
      ? kept.slice(this.ruleset.length + SEAM.length)
      : undefined;
  }

  private async apply(script: string, signal: AbortSignal): Promise<void> {
    try {
      await this.host.runner.run({ command: 'nft', args: ['-f', '-'], input: script }, signal);
    } catch (cause) {
      throw this.host.errors.retryable(`replace the table inet ${TABLE}`, { cause, code: 'NetworkFailed' });
    }
  }

  /** As the kernel has it; undefined: there is none. */
  private async list(signal: AbortSignal): Promise<string | undefined> {
    const args = ['-nn', 'list', 'table', 'inet', TABLE];
    const { exitCode, stdout, stderr } = await this.host.runner.run({ command: 'nft', args, okCodes: [0, 1] }, signal);
    if (exitCode === 0) return stdout;
    if (stderr.includes('No such file or directory')) return undefined;
    throw this.host.errors.retryable(`list the table inet ${TABLE}: ${stderr.trim().split('\n')[0] ?? ''}`);
  }
}

/** As `table ip filter, chain FORWARD`. Undefined: not what `nft -j list chains` prints. Pure. */
export function parseForwardDrops(text: string): readonly string[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const entries = isObject(value) ? value['nftables'] : undefined;
  if (!Array.isArray(entries)) return undefined;
  return entries.flatMap((entry) => {
    const chain = objectOf({ entry }, 'entry');
    const of = objectOf(chain, 'chain');
    const family = textOf(of, 'family');
    if (textOf(of, 'hook') !== 'forward' || textOf(of, 'policy') !== 'drop') return [];
    if (family !== 'ip' && family !== 'inet') return [];
    return [`table ${family} ${textOf(of, 'table') ?? ''}, chain ${textOf(of, 'name') ?? ''}`];
  });
}
