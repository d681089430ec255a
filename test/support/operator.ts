/**
 * An operator at work: drives the built agent by the commands that a person types, over a state directory, a run directory
 * and a manifest folder of its own. It knows nothing that the command line does not tell.
 *
 * What it started is ended by pid and what it made is removed by `remove`, which holds also after a failed test when it is
 * registered with `afterAll` before anything is started.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { StatusView, VmSummaryView, VmView } from '@eitri/protocol';
import type { Namespace } from './netenv/namespace.js';
import { OperatorConsole } from './operator-console.js';
import { endProcessesOf, isAlive } from './processes.js';
import { removeFolder, sharedFolder } from './temp.js';
import { until } from './until.js';

const BIN = fileURLToPath(new URL('../../bin/run.js', import.meta.url));

/** A guest boots in ten seconds where it is quiet, and in a minute on a busy machine without hardware acceleration. */
export const BOOT = { timeoutMs: 150_000, everyMs: 250 };
const SOON = { timeoutMs: 60_000, everyMs: 250 };

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class Operator {
  readonly folder = sharedFolder('eit-e2e-');
  readonly state: string;
  readonly run = join(this.folder, 'run');
  readonly manifests = join(this.folder, 'vms');
  private readonly log = join(this.folder, 'agent.log');
  private readonly host: Namespace | undefined;
  private readonly enter: readonly string[];
  private readonly consoles: OperatorConsole[] = [];
  private readonly program: string;
  private readonly env: NodeJS.ProcessEnv;
  private agent: { readonly pid: number; readonly ended: Promise<unknown> } | undefined;

  /**
   * `host`: a namespace whose network is the host's, and guests are on it; absent: guests have networks of their own.
   * `program` and `env`: another agent than the checkout's, and what it finds in its environment. `enter`: words before
   * every command, where `host` alone is not where it runs.
   */
  constructor(
    options: {
      readonly state?: string;
      readonly host?: Namespace;
      readonly program?: string;
      readonly env?: NodeJS.ProcessEnv;
      readonly enter?: readonly string[];
    } = {},
  ) {
    this.host = options.host;
    this.enter = options.enter ?? (options.host === undefined ? [] : ['ip', 'netns', 'exec', options.host.name]);
    this.state = options.state ?? join(this.folder, 'state');
    this.program = options.program ?? BIN;
    this.env = options.env ?? process.env;
  }

  get agentPid(): number {
    if (this.agent === undefined) throw new Error('no agent was started');
    return this.agent.pid;
  }

  /** Runs one command to its end. */
  cli(...args: readonly string[]): Promise<CommandResult> {
    return this.exec(...args, ...this.places());
  }

  private exec(...args: readonly string[]): Promise<CommandResult> {
    return new Promise((resolve) => {
      const options = { maxBuffer: 64 * 2 ** 20, timeout: 120_000, env: this.env };
      execFile(...this.words(args), options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      });
    });
  }

  /** Runs one command that has to succeed; answers what it printed. */
  async done(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.cli(...args);
    if (code !== 0) throw new Error(`eitri-agent ${args.join(' ')}: exit ${String(code)}: ${stderr}`);
    return stdout;
  }

  readonly status = async (): Promise<StatusView> => JSON.parse(await this.done('status', '--json')) as StatusView;
  readonly vm = async (name: string): Promise<VmView> =>
    JSON.parse(await this.done('vm', 'show', name, '--json')) as VmView;
  readonly vms = async (): Promise<readonly VmSummaryView[]> =>
    JSON.parse(await this.done('vm', 'list', '--json')) as readonly VmSummaryView[];

  /** Makes the manifest folder. */
  async init(): Promise<void> {
    const { code, stderr } = await this.cli('local', 'init', this.manifests);
    if (code !== 0) throw new Error(stderr);
  }

  /** Puts a file into the manifest folder as a careful editor does: whole. */
  put(file: string, text: string): void {
    const draft = join(this.folder, 'draft');
    writeFileSync(draft, text);
    renameSync(draft, join(this.manifests, file));
  }

  read(file: string): string {
    return readFileSync(join(this.manifests, file), 'utf8');
  }

  /** Starts the agent, and waits for nothing. */
  launch(...flags: readonly string[]): { readonly pid: number } {
    const child = this.spawnAgent(flags);
    this.agent = child;
    return child;
  }

  /** Starts the agent and waits until it answers. */
  async start(...flags: readonly string[]): Promise<void> {
    const child = this.launch(...flags);
    await until(
      async () => {
        if (!isAlive(child.pid)) throw new Error(`the agent ended: ${this.agentLog()}`);
        return (await this.cli('status')).code === 0;
      },
      { ...SOON, what: 'the agent answers' },
    );
  }

  /** An agent that can't start, beside one that runs, or with such flags in the place of its own; resolves with how it ended. */
  refused(flags: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
    const own = [...this.runArgs([]), ...this.places()].slice(1);
    const words: string[] = [];
    for (let at = 0; at < own.length; at += 2) {
      const [name = '', value = ''] = own.slice(at, at + 2);
      if (!(name in flags)) words.push(name, value);
    }
    return this.exec('run', ...words, ...Object.entries(flags).flat());
  }

  /** The agent dies as in a power cut; its guests do not. */
  async kill(): Promise<void> {
    await this.end('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.end('SIGTERM');
  }

  /** A console as a person joins one: it shows what is printed from now on, and takes the keyboard. */
  async console(name: string, { backlog = false } = {}): Promise<OperatorConsole> {
    await this.untilVm(name, (vm) => vm.console === 'connected');
    const args = [
      this.program,
      'vm',
      'console',
      name,
      '--force',
      backlog ? '--backlog' : '--no-backlog',
      ...this.places(),
    ];
    const joined = new OperatorConsole(process.execPath, args);
    this.consoles.push(joined);
    return joined;
  }

  /** The guest's console from power-on. */
  logs(name: string): Promise<string> {
    return this.done('vm', 'logs', name);
  }

  async untilVm(name: string, holds: (vm: VmView) => boolean, options = SOON): Promise<VmView> {
    return await until(
      async () => {
        const vm = await this.vm(name);
        if (holds(vm)) return vm;
        const { phase, reason, message, pid, boots } = vm;
        throw new Error(JSON.stringify({ phase, reason, message, pid, boots }));
      },
      { ...options, what: `${name}: ${holds.toString()}; agent: ${this.agentLog()}` },
    );
  }

  /** Waits until the guest printed this. */
  async untilPrinted(name: string, pattern: RegExp): Promise<RegExpExecArray> {
    return await until(async () => pattern.exec(await this.logs(name)), {
      ...BOOT,
      what: `${name} prints ${String(pattern)}; agent: ${this.agentLog()}`,
    });
  }

  /** What the agents complained of, last. */
  agentLog(): string {
    const lines = readFileSync(this.log, 'utf8').split('\n');
    return lines
      .filter((line) => /"level":"(warn|error)"|^[^{]/.test(line))
      .slice(-15)
      .join('\n');
  }

  /** Ends every process of this operator and removes all files. */
  async remove(): Promise<void> {
    try {
      for (const joined of this.consoles) await joined.leave();
      await endProcessesOf(this.folder);
      await this.agent?.ended;
    } finally {
      removeFolder(this.folder);
    }
  }

  /** A command of the agent's, in its host's network. */
  private words(args: readonly string[]): readonly [program: string, args: readonly string[]] {
    const [program = process.execPath, ...words] = [...this.enter, process.execPath, this.program, ...args];
    return [program, words];
  }

  private places(): readonly string[] {
    return ['--state-dir', this.state, '--run-dir', this.run];
  }

  private runArgs(flags: readonly string[]): readonly string[] {
    const network = this.host === undefined ? ['--guest-network', 'user'] : [];
    const fixed = ['--backend', 'qemu', ...network, '--bootstrap-url', '', '--tombstone-grace', '1s'];
    return ['run', '--local', this.manifests, ...fixed, ...flags];
  }

  private spawnAgent(flags: readonly string[]): { readonly pid: number; readonly ended: Promise<unknown> } {
    const log = openSync(this.log, 'a');
    const [program, args] = this.words([...this.runArgs(flags), ...this.places()]);
    const child = spawn(program, args, { stdio: ['ignore', log, log], env: this.env });
    closeSync(log);
    if (child.pid === undefined) throw new Error('the agent could not be started');
    return { pid: child.pid, ended: once(child, 'exit') };
  }

  private async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    process.kill(this.agentPid, signal);
    await this.agent?.ended;
  }
}
