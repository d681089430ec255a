/**
 * Commands that hand manifests in: the agent writes them into its folder, all or, when one is refused, none.
 */
import { readFile, stat } from 'node:fs/promises';
import { Flags } from '@oclif/core';
import { EXIT, exitError, formatBytes, systemCode } from '@eitri/core/kit';
import { ADMIN_LIMITS } from '@eitri/protocol';
import type { PlaceFlags } from './agent-command.js';
import { ClientCommand } from './client-command.js';

export const writeFlags = {
  file: Flags.string({
    char: 'f',
    required: true,
    helpValue: 'FILE',
    description: 'YAML or JSON with one or more documents; - reads standard input',
  }),
  json: Flags.boolean({ description: 'print JSON: what was changed' }),
};

export interface WriteFlags extends PlaceFlags {
  readonly file: string;
  readonly json: boolean;
}

export abstract class WriteCommand extends ClientCommand {
  protected async write(mode: 'create' | 'apply', flags: WriteFlags): Promise<void> {
    const text = flags.file === '-' ? await readInput() : await readManifests(flags.file);
    const written = await this.withAgent(flags, (client, signal) => client.write(text, mode, signal));
    if (flags.json) this.printJson(written);
    else this.print(written.message);
  }
}

const tooLarge = (): Error =>
  exitError(
    EXIT.badInput,
    `--file: more than ${formatBytes(ADMIN_LIMITS.manifestBytes)}: hand in fewer documents at once`,
  );

async function readManifests(path: string): Promise<string> {
  try {
    if ((await stat(path)).size > ADMIN_LIMITS.manifestBytes) throw tooLarge();
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    const why =
      code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a folder' : `it can't be read (${code})`;
    throw exitError(EXIT.badInput, `--file ${path}: ${why}: name a file of manifests, or - for standard input`);
  }
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > ADMIN_LIMITS.manifestBytes) throw tooLarge();
  }
  return Buffer.concat(chunks).toString('utf8');
}
