/**
 * The built command line, started as an operator starts it. Needs a build (scripts/test makes one).
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { tempFolder } from './temp.js';

export const AGENT_ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  /** Another installation than this checkout. */
  readonly root?: string;
  /** A program that starts the command, with its arguments. */
  readonly prefix?: readonly string[];
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Told what was printed so far, each time that more is. */
  readonly onStdout?: (text: string) => void;
}

/** Nothing of the caller's own settings, and a home of its own. */
function cleanEnv(extra: CliOptions['env']): NodeJS.ProcessEnv {
  const home = tempFolder();
  return { PATH: process.env['PATH'], HOME: home, NO_COLOR: '1', TZ: 'UTC', EITRI_BOOTSTRAP_URL: '', ...extra };
}

export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const words = [...(options.prefix ?? []), process.execPath];
  const child = spawn(
    words[0] ?? process.execPath,
    [...words.slice(1), `${options.root ?? AGENT_ROOT}/bin/run.js`, ...args],
    {
      env: cleanEnv(options.env),
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => {
    out.push(chunk);
    options.onStdout?.(Buffer.concat(out).toString('utf8'));
  });
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const code = await new Promise<number>((resolve) => child.once('close', (status) => resolve(status ?? -1)));
  return { code, stdout: Buffer.concat(out).toString('utf8'), stderr: Buffer.concat(err).toString('utf8') };
}

/** An agent of the built command line in the background; told to end, and waited for, with the test. */
export function startAgent(
  args: readonly string[],
  options: Pick<CliOptions, 'env' | 'prefix'> = {},
): {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly stop: () => Promise<number>;
  /** Its log so far. */
  readonly said: () => string;
} {
  const words = [...(options.prefix ?? []), process.execPath, `${AGENT_ROOT}/bin/run.js`, 'run', ...args];
  const child = spawn(words[0] ?? process.execPath, words.slice(1), {
    env: cleanEnv(options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Read, or it would stand still with a full pipe.
  child.stdout.resume();
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = new Promise<number>((resolve) => child.once('close', (status) => resolve(status ?? -1)));
  const stop = async (): Promise<number> => {
    child.kill('SIGTERM');
    return await ended;
  };
  onTestFinished(async () => {
    await stop();
  });
  return { child, stop, said: () => said };
}

/** What a person sees of a result, with the test's own folder named `folder`, as a golden file holds it. */
export function shown(result: CliResult, folder: string, wrapped: (text: string) => string): string {
  // Lines break where they break for this folder's length: undone, and done again for the name that stands for it.
  const sentence = (text: string): string =>
    text
      .split(/\n(?! )/)
      .map((part) => part.replace(/\n\s+/g, ' ').replaceAll(folder, '/folder'))
      .map((part) => (part === '' ? part : wrapped(part)))
      .join('\n');
  const log = (text: string): string => text.replace(/^\{.*\}\n/gm, '');
  return `${result.stdout}${sentence(log(result.stderr))}exit ${result.code}\n`;
}
