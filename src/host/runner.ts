/**
 * Runs short-lived foreign programs through execa: arguments as a list, never a shell; input given or closed; output,
 * time and the life of whatever the program started bounded.
 *
 * A program gets a process group of its own. So a Ctrl-C in the agent's terminal does not cut a tool off half-way, and
 * when the time is over, or the caller gave up, the program's own children end with it. A program that left a child
 * behind which holds its output open does not hold up its caller: the output is taken as it stands shortly after the
 * program's end.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { execa } from 'execa';
import { injectable } from 'tsyringe';
import type { Runner, RunRequest, RunResult } from '@eitri/core/contracts';
import { permanent, retryable } from '@eitri/core/kit';
import { Tail } from './tail.js';

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_STDOUT_BYTES = 16 * 2 ** 20;
const MAX_STDERR_BYTES = 64 * 2 ** 10;
/** From the asking (SIGTERM) to the ending (SIGKILL). */
const KILL_AFTER_MS = 2_000;
/** How long output may still arrive after the program ended, where a child of it keeps the pipe open. */
const DRAIN_MS = 500;
/** A service may have no PATH at all; these are where a host's tools stand. */
const FALLBACK_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

type Stop = 'timeout' | 'aborted' | 'overflow';

@injectable()
export class ExecaRunner implements Runner {
  /** The folders that bare names are looked up in, as in PATH: those of the agent and then the usual ones. */
  private readonly path = searchPath(process.env['PATH']);

  readonly run = async (request: RunRequest, signal: AbortSignal): Promise<RunResult> => {
    const what = `run ${request.command}`;
    if (signal.aborted) throw retryable(`${what}: given up before it began`, { cause: signal.reason });
    const { timeoutMs = DEFAULT_TIMEOUT_MS, okCodes = [0] } = request;

    const program = execa(request.command, request.args, {
      reject: false,
      detached: true,
      ...(request.input === undefined ? { stdin: 'ignore' as const } : { input: request.input }),
      stdout: 'pipe',
      stderr: 'pipe',
      // Collected here: over its own limit execa waits five seconds more.
      buffer: false,
      // Messages of tools are matched and shown: one language, on every host.
      env: { LC_ALL: 'C', PATH: this.path, ...request.env },
    });

    const errors = new Tail(MAX_STDERR_BYTES);
    program.stderr.on('data', (chunk: Buffer) => errors.push(chunk));

    let stop: Stop | undefined;
    let ended = false;
    const timers: NodeJS.Timeout[] = [];
    const end = (why: Stop): void => {
      if (stop !== undefined || ended) return;
      stop = why;
      killGroup(program.pid, 'SIGTERM');
      timers.push(setTimeout(() => killGroup(program.pid, 'SIGKILL'), KILL_AFTER_MS));
    };
    const onAbort = (): void => end('aborted');
    signal.addEventListener('abort', onAbort, { once: true });
    timers.push(setTimeout(() => end('timeout'), timeoutMs));
    const output: Buffer[] = [];
    let printed = 0;
    program.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.length;
      if (printed > MAX_STDOUT_BYTES) end('overflow');
      else output.push(chunk);
    });
    program.once('exit', () => {
      ended = true;
      timers.push(
        setTimeout(() => {
          program.stdout.destroy();
          program.stderr.destroy();
        }, DRAIN_MS),
      );
    });

    try {
      const result = await program;
      if (stop !== undefined) killGroup(program.pid, 'SIGKILL');
      const stderr = errors.text();
      if (stop === 'aborted') throw retryable(`${what}: given up by its caller`, { cause: signal.reason });
      if (stop === 'timeout') {
        throw retryable(withLastLine(`${what}: not done within ${timeoutMs / 1000} s and ended`, stderr));
      }
      if (printed > MAX_STDOUT_BYTES) {
        throw retryable(`${what}: it printed more than ${MAX_STDOUT_BYTES / 2 ** 20} MiB`);
      }
      if (result.exitCode !== undefined && okCodes.includes(result.exitCode)) {
        return { exitCode: result.exitCode, stdout: Buffer.concat(output).toString('utf8'), stderr };
      }
      throw failure(request, what, result, stderr);
    } finally {
      signal.removeEventListener('abort', onAbort);
      for (const timer of timers) clearTimeout(timer);
    }
  };

  readonly which = async (command: string): Promise<string | undefined> => {
    if (command === '') return undefined;
    const candidates = command.includes('/')
      ? [resolve(command)]
      : this.path.split(delimiter).map((folder) => join(folder, command));
    for (const candidate of candidates) {
      if (await isExecutable(candidate)) return candidate;
    }
    return undefined;
  };
}

interface Ended {
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly code?: string | undefined;
  readonly cause?: unknown;
}

function failure(request: RunRequest, what: string, result: Ended, stderr: string): Error {
  const { command } = request;
  if (result.code === 'ENOENT') {
    const where = command.includes('/') ? 'there is no such file' : 'it is not on PATH';
    return permanent(`${what}: ${where}; install ${command}`, { cause: result.cause });
  }
  if (result.code === 'EACCES') return permanent(`${what}: it may not be executed`, { cause: result.cause });
  if (result.exitCode !== undefined) return retryable(withLastLine(`${what}: exit code ${result.exitCode}`, stderr));
  if (result.signal !== undefined) return retryable(withLastLine(`${what}: ended by ${result.signal}`, stderr));
  return retryable(what, { cause: result.cause });
}

function withLastLine(message: string, stderr: string): string {
  const last = stderr.trimEnd().split('\n').at(-1)?.trim() ?? '';
  return last === '' ? message : `${message}: ${last}`;
}

/** The group's id is the pid of its first process, which may be gone while others of the group are not. */
function killGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // Nobody left in it.
  }
}

function searchPath(path: string | undefined): string {
  const folders = [...(path ?? '').split(delimiter), ...FALLBACK_PATH.split(delimiter)];
  // An empty or relative entry would mean the working folder: a tool must never come from there.
  return [...new Set(folders.filter(isAbsolute))].join(delimiter);
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
