/**
 * Manifests from files, folders and standard input, bounded, with an error that names the file.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { EXIT, exitError, formatBytes, systemCode } from '@eitri/core/kit';

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** What the agent reads of a folder of manifests: no hidden file, and nothing below it. */
const MANIFEST_NAME = /^[^.].*\.(yaml|yml|json)$/;

const tooLarge = (mostBytes: number): Error =>
  exitError(EXIT.badInput, `--file: more than ${formatBytes(mostBytes)}: hand in fewer documents at once`);

/** The text of one file, or of standard input for `-`. */
export async function readManifests(path: string, mostBytes: number): Promise<string> {
  if (path === '-') return await readInput(mostBytes);
  try {
    if ((await stat(path)).size > mostBytes) throw tooLarge(mostBytes);
    return await readFile(path, 'utf8');
  } catch (error) {
    throw unread(path, error);
  }
}

/** The manifests of files and of whole folders, `mostBytes` together; standard input is called `input`. */
export async function readManifestTree(paths: readonly string[], mostBytes: number): Promise<readonly NamedText[]> {
  const texts: NamedText[] = [];
  let left = mostBytes;
  for (const path of (await Promise.all(paths.map(expand))).flat()) {
    const text = await readManifests(path, mostBytes);
    left -= Buffer.byteLength(text);
    if (left < 0) throw tooLarge(mostBytes);
    texts.push({ name: path === '-' ? 'input' : path, text });
  }
  return texts;
}

async function expand(path: string): Promise<readonly string[]> {
  if (path === '-') return [path];
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => MANIFEST_NAME.test(name)).sort();
    if (names.length > 0) return names.map((name) => join(path, name));
  } catch (error) {
    throw unread(path, error);
  }
  throw exitError(EXIT.badInput, `--file ${path}: no manifest is in it: they are called NAME.yaml or NAME.json`);
}

function unread(path: string, error: unknown): unknown {
  const code = systemCode(error);
  if (code === undefined) return error;
  const why = code === 'ENOENT' ? 'no such file' : code === 'EISDIR' ? 'it is a folder' : `it can't be read (${code})`;
  return exitError(EXIT.badInput, `--file ${path}: ${why}: name a file of manifests, or - for standard input`);
}

async function readInput(mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > mostBytes) throw tooLarge(mostBytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}
