/**
 * The one door to `nft`: our table, whole or not at all.
 *
 * Drift is found by comparing what the kernel lists now with what it listed right after the table was made: no parser of
 * ours has to understand how this version of nft spells a rule.
 */
import type { NetworkHost } from '@eitri/core/contracts';
import { TABLE } from './names.js';
import { REMOVAL } from './ruleset.js';

export class NftTable {
  private asMade: string | undefined;

  constructor(
    private readonly host: NetworkHost,
    private readonly ruleset: string,
  ) {}

  /** Makes the table true. Answers whether it had to be made. */
  async ensure(signal: AbortSignal): Promise<boolean> {
    if (this.asMade !== undefined && (await this.list(signal)) === this.asMade) return false;
    await this.apply(this.ruleset, signal);
    this.asMade = await this.list(signal);
    return true;
  }

  async remove(signal: AbortSignal): Promise<void> {
    await this.apply(REMOVAL, signal);
    this.asMade = undefined;
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
