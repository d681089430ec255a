/**
 * Commands that hand manifests in: the agent writes them into its folder, all or, when one is refused, none.
 */
import { readFile, stat } from 'node:fs/promises';
import { Flags } from '@oclif/core';
import { EXIT, exitError, formatBytes, systemCode } from '@eitri/core/kit';
import { ADMIN_LIMITS } from '@eitri/protocol';
import type { PlaceFlags } from './agent-command.js';
import { durationOf } from '../../app/flags.js';
import { ClientCommand } from './client-command.js';
import { REACHED, waitFor } from './wait.js';
import { shallWait, waitFlags, type WaitFlags } from './wait-flags.js';

export const writeFlags = {
  file: Flags.string({
    char: 'f',
    required: true,
    helpValue: 'FILE',
    description: 'YAML or JSON with one or more documents; - reads standard input',
  }),
  json: Flags.boolean({ description: 'print JSON: what was changed' }),
  ...waitFlags,
};

export interface WriteFlags extends PlaceFlags, WaitFlags {
  readonly file: string;
  readonly json: boolean;
}

export abstract class WriteCommand extends ClientCommand {
  protected async write(mode: 'create' | 'apply', flags: WriteFlags): Promise<void> {
    const text = flags.file === '-' ? await readInput() : await readManifests(flags.file);
    const timeoutMs = durationOf(flags.timeout, '--timeout');
    await this.withAgent(flags, async (client, signal) => {
      const written = await client.write(text, mode, signal);
      if (flags.json) this.printJson(written);
      else this.print(written.message);
      if (!shallWait(flags, this.argv)) return;
      const end = performance.now() + timeoutMs;
      for (const { id, uid, power } of written.vms) {
        if (uid === undefined || power === undefined) continue;
        const left = Math.max(0, end - performance.now());
        await waitFor(client, { name: id, uid, goal: power, timeoutMs: left }, signal);
        if (!flags.json) this.print(`${id} is ${REACHED[power]}`);
      }
    });
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
