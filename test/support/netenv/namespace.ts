/**
 * Network namespaces for tests: whatever a tool does to "the host's" network happens in one, and never to this machine's.
 *
 * A namespace is removed by whoever made it, with the processes in it, which are asked for by the namespace and ended by
 * pid. `/sys` of a program in it is the namespace's own.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import type { Runner, RunRequest, StartRequest, Supervisor } from '@eitri/core/contracts';
import { until } from '../until.js';

const run = promisify(execFile);

export class Namespace {
  private constructor(readonly name: string) {}

  static async make(): Promise<Namespace> {
    const made = new Namespace(`eitest-${randomBytes(4).toString('hex')}`);
    await run('ip', ['netns', 'add', made.name]);
    try {
      await made.ip('link set lo up');
    } catch (error) {
      // Nobody else knows of it.
      await run('ip', ['netns', 'delete', made.name]);
      throw error;
    }
    return made;
  }

  /** Runs a program in it; resolves with what it printed. */
  async exec(command: string, ...args: readonly string[]): Promise<string> {
    return (await run('ip', ['netns', 'exec', this.name, command, ...args])).stdout;
  }

  /** `ip` with the words of this line. */
  ip(line: string): Promise<string> {
    return this.exec('ip', ...line.split(' '));
  }

  async json(line: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const text = await this.ip(`-json -details ${line}`);
    return text.trim() === '' ? [] : (JSON.parse(text) as readonly Readonly<Record<string, unknown>>[]);
  }

  /** Starts a program that runs on; it ends with the namespace. */
  spawn(command: string, ...args: readonly string[]): ChildProcess {
    return spawn('ip', ['netns', 'exec', this.name, command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  }

  async pids(): Promise<readonly number[]> {
    const { stdout } = await run('ip', ['netns', 'pids', this.name]);
    return stdout.split('\n').filter(Boolean).map(Number);
  }

  async remove(): Promise<void> {
    await until(
      async () => {
        const pids = await this.pids();
        for (const pid of pids) {
          try {
            process.kill(pid, 'SIGKILL');
          } catch {
            // It has ended.
          }
        }
        return pids.length === 0;
      },
      { what: `processes in ${this.name} end` },
    );
    await run('ip', ['netns', 'delete', this.name]);
  }
}

/** Programs run in the namespace; `prefix` stands before each of them. */
export class NamespaceRunner implements Runner {
  constructor(
    private readonly inner: Runner,
    private readonly namespace: string,
    private readonly prefix: readonly string[] = [],
  ) {}

  readonly run = (request: RunRequest, signal: AbortSignal) =>
    this.inner.run(
      {
        ...request,
        command: 'ip',
        args: ['netns', 'exec', this.namespace, ...this.prefix, request.command, ...request.args],
      },
      signal,
    );

  readonly which = (command: string): Promise<string | undefined> => this.inner.which(command);
}

/** Processes start in the namespace: `ip netns exec` becomes the program, with its pid, its path and its arguments. */
export function supervisorIn(namespace: string, ip: string, inner: Supervisor): Supervisor {
  return {
    start: (request: StartRequest, signal) =>
      inner.start(
        {
          ...request,
          identity: { ...request.identity, executable: ip },
          args: ['netns', 'exec', namespace, request.identity.executable, ...request.args],
        },
        signal,
      ),
    observe: inner.observe,
    signal: inner.signal,
    waitGone: inner.waitGone,
    forget: inner.forget,
    onExit: inner.onExit,
  };
}
