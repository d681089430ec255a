/**
 * What the system says about processes: one by its pid, or all command lines at once. Reads only.
 *
 * A zombie has ended and only waits to be counted: it is gone here, since an orphan's may stay for ever where the
 * system's first process does not reap.
 */
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import type { HostFacts, Runner } from '@eitri/core/contracts';
import { retryable, systemCode } from '@eitri/core/kit';

export interface ProcessFacts {
  readonly pid: number;
  readonly parentPid: number;
  /** Opaque; differs between two processes that had the same pid in one boot. */
  readonly startTime: string;
  /** The file that runs; without ` (deleted)` where it was replaced since. Undefined: we may not know. */
  readonly executable: string | undefined;
  /** The user it acts as. Undefined: we may not know. */
  readonly userId: number | undefined;
  readonly argv: readonly string[];
}

export interface CommandLine {
  readonly pid: number;
  readonly argv: readonly string[];
}

export interface ProcessTable {
  /** Everything about a process; undefined when it is gone. */
  readonly inspect: (pid: number) => Promise<ProcessFacts | undefined>;
  /** Only when it started: the cheap half of `inspect`. */
  readonly startTime: (pid: number) => Promise<string | undefined>;
  /** The command lines of all processes that have one. One sweep; what ends or begins meanwhile may be in it or not. */
  readonly commandLines: () => Promise<readonly CommandLine[]>;
}

export const processTableFor = (facts: HostFacts, runner: Runner): ProcessTable =>
  facts.os === 'linux' ? new ProcProcessTable() : new PsProcessTable(runner);

/** How many command lines are read before others of this process get their turn. */
const SLICE = 128;
const DELETED = ' (deleted)';

/**
 * Linux. Reads are synchronous: /proc is memory, and a read through the thread pool costs ten times the read itself.
 */
export class ProcProcessTable implements ProcessTable {
  constructor(private readonly proc = '/proc') {}

  readonly inspect = async (pid: number): Promise<ProcessFacts | undefined> => {
    const stat = this.stat(pid);
    if (stat === undefined) return Promise.resolve(undefined);
    const argv = parseArgv(this.read(pid, 'cmdline') ?? '');
    const userId = parseEffectiveUser(this.read(pid, 'status') ?? '');
    const executable = this.executable(pid);
    // The pid may have changed hands between the reads: what was read of two processes is of neither.
    if (this.stat(pid)?.startTime !== stat.startTime) return Promise.resolve(undefined);
    return Promise.resolve({ pid, ...stat, executable, userId, argv });
  };

  readonly startTime = (pid: number): Promise<string | undefined> => Promise.resolve(this.stat(pid)?.startTime);

  readonly commandLines = async (): Promise<readonly CommandLine[]> => {
    const lines: CommandLine[] = [];
    let names: string[];
    try {
      names = readdirSync(this.proc);
    } catch (cause) {
      throw retryable('list processes', { cause });
    }
    const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
    for (const [i, pid] of pids.entries()) {
      if (i % SLICE === SLICE - 1) await new Promise((resolve) => setImmediate(resolve));
      const argv = parseArgv(this.read(pid, 'cmdline') ?? '');
      if (argv.length > 0) lines.push({ pid, argv });
    }
    return lines;
  };

  private stat(pid: number): { readonly parentPid: number; readonly startTime: string } | undefined {
    const text = this.read(pid, 'stat');
    const stat = text === undefined ? undefined : parseStat(text);
    return stat === undefined || stat.ended ? undefined : { parentPid: stat.parentPid, startTime: stat.startTime };
  }

  private executable(pid: number): string | undefined {
    try {
      const path = readlinkSync(`${this.proc}/${pid}/exe`);
      return path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path;
    } catch {
      return undefined;
    }
  }

  /** Undefined for a process that is gone; one that ends between open and read answers ESRCH. */
  private read(pid: number, file: string): string | undefined {
    try {
      return readFileSync(`${this.proc}/${pid}/${file}`, 'utf8');
    } catch (cause) {
      if (['ENOENT', 'ESRCH'].includes(systemCode(cause) ?? '')) return undefined;
      throw retryable(`read ${file} of process ${pid}`, { cause });
    }
  }
}

/**
 * State, parent and start time (ticks since boot: field 22) of `/proc/PID/stat`. The second field, the program's name,
 * holds whatever its owner likes, also spaces and `)`: fields count from behind the last one.
 */
export function parseStat(
  text: string,
): { readonly ended: boolean; readonly parentPid: number; readonly startTime: string } | undefined {
  const fields = text
    .slice(text.lastIndexOf(')') + 1)
    .trim()
    .split(' ');
  const [state, parent] = fields;
  const startTime = fields[19];
  if (state === undefined || parent === undefined || startTime === undefined || !/^\d+$/.test(startTime)) {
    return undefined;
  }
  return { ended: state === 'Z' || state === 'X' || state === 'x', parentPid: Number(parent), startTime };
}

/** Arguments as `/proc/PID/cmdline` has them, each ended by a NUL. An empty one counts. */
export function parseArgv(text: string): readonly string[] {
  if (text === '') return [];
  return (text.endsWith('\0') ? text.slice(0, -1) : text).split('\0');
}

function parseEffectiveUser(status: string): number | undefined {
  const match = /^Uid:\s+\d+\s+(\d+)/m.exec(status);
  return match === null ? undefined : Number(match[1]);
}

/** UTC: `lstart` is local time, and the zone may change while a VM runs. */
const PS_ENV = { TZ: 'UTC' };

/**
 * macOS, by ps. It shows a command line as words joined by blanks; an argument with a blank in it comes apart, so names
 * that identify a VM have none.
 */
export class PsProcessTable implements ProcessTable {
  constructor(
    private readonly runner: Runner,
    private readonly signal: AbortSignal = new AbortController().signal,
  ) {}

  readonly inspect = async (pid: number): Promise<ProcessFacts | undefined> => {
    const head = parsePsHead(await this.ps(['-o', 'ppid=,uid=,stat=,lstart=', '-p', String(pid)]));
    if (head === undefined) return undefined;
    const executable = (await this.ps(['-o', 'comm=', '-p', String(pid)])).trim();
    const command = (await this.ps(['-ww', '-o', 'args=', '-p', String(pid)])).trim();
    if ((await this.startTime(pid)) !== head.startTime) return undefined;
    return { pid, ...head, executable: executable === '' ? undefined : executable, argv: command.split(' ') };
  };

  readonly startTime = async (pid: number): Promise<string | undefined> =>
    parsePsHead(await this.ps(['-o', 'ppid=,uid=,stat=,lstart=', '-p', String(pid)]))?.startTime;

  readonly commandLines = async (): Promise<readonly CommandLine[]> => {
    const text = await this.ps(['-axww', '-o', 'pid=,args=']);
    return text.split('\n').flatMap((line) => {
      const match = /^\s*(\d+)\s+(\S.*)$/.exec(line);
      return match?.[2] === undefined ? [] : [{ pid: Number(match[1]), argv: match[2].split(' ') }];
    });
  };

  /** Code 1: there is no such process. */
  private async ps(args: readonly string[]): Promise<string> {
    return (await this.runner.run({ command: 'ps', args, env: PS_ENV, okCodes: [0, 1] }, this.signal)).stdout;
  }
}

/** `ppid uid stat lstart`; undefined for no process, and for one that has ended. */
export function parsePsHead(
  text: string,
): { readonly parentPid: number; readonly userId: number; readonly startTime: string } | undefined {
  const match = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S.*?)\s*$/m.exec(text);
  if (match?.[3] === undefined || match[4] === undefined || match[3].startsWith('Z')) return undefined;
  return { parentPid: Number(match[1]), userId: Number(match[2]), startTime: match[4].replace(/\s+/g, ' ') };
}
