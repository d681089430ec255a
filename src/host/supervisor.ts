/**
 * Supervises VMMs that outlive the agent: each in a session of its own, with a file for its output, and a pidfile by
 * which the next agent knows it again. systemd, where it runs, is another implementation of the same contract.
 *
 * What is known of one process, under its pidfile's path:
 *
 *     (nothing) ── start ──► child ──── exit event ────► ended(code, signal)
 *         │                                                 ▲          │
 *         └── found by pidfile or by its command line ──► adopted ─────┘ gone from the process table
 *                                                                      │
 *     (nothing) ◄────────────────────── forget, start ─────────────────┘
 *
 * A child of ours keeps its pid until we reaped it, so its pid is proof. An adopted one may end and leave its pid to a
 * stranger at any moment: its start time is compared when it is adopted, before each signal, and now and then between;
 * not at each look, which would cost a thousand reads of /proc a tick.
 *
 * Lock order: one lock a pidfile, nothing is taken inside it. Looks at what is already known take none.
 * Held by test/integration/host/supervisor.test.ts (real processes) and test/unit/host/supervisor.test.ts (refusals).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { inject, injectable } from 'tsyringe';
import {
  CLOCK,
  HOST_FACTS,
  LOGGER,
  type Clock,
  type HostFacts,
  type Logger,
  type ProcessIdentity,
  type ProcessRef,
  type ProcessSignal,
  type ProcessState,
  type StartRequest,
  type Supervisor,
} from '@eitri/core/contracts';
import { errorLine, KeyedMutex, permanent, retryable, systemCode } from '@eitri/core/kit';
import { readIfThere, removeDurably, writeAtomically } from './atomic-file.js';
import { formatPidFile, MAX_PID_FILE_BYTES, parsePidFile } from './pid-file.js';
import { eldest, holdsPair, indexPairs, matchProcess, pairKey, type Program } from './process-match.js';
import type { ProcessFacts, ProcessTable } from './process-table.js';
import { openVmmLog, rotateVmmLog } from './vmm-log.js';

export const SUPERVISOR_OPTIONS = Symbol.for('eitri.supervisor-options@1');

export interface SupervisorOptions {
  readonly table: ProcessTable;
  /** As `process.kill`: throws ESRCH or EPERM; 0 only asks. */
  readonly signalProcess: (pid: number, name: ProcessSignal | 0) => void;
  /** The user that the agent runs as. */
  readonly userId: number | undefined;
  /** The agent's environment; a VMM gets `VMM_ENVIRONMENT` of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export const realSupervisorOptions = (table: ProcessTable): SupervisorOptions => ({
  table,
  signalProcess: (pid, name) => void process.kill(pid, name),
  userId: process.geteuid?.(),
  env: process.env,
});

/** What of the agent's environment a VMM needs. All else stays here: it may hold a token, or a debugger's switch. */
const VMM_ENVIRONMENT = /^(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TZ|LANG|LC_[A-Z]+|XDG_RUNTIME_DIR)$/;
/** How old a check of an adopted process's start time may be. */
const RECHECK_MS = 10_000;
/** How old a sweep over all command lines may be: many VMs without a pidfile share one. */
const SWEEP_MAX_AGE_MS = 1_000;
const POLL_MS = 100;
/** How long a killed child is waited for; longer only when it hangs in the kernel. */
const REAP_MS = 5_000;

const PERMANENT_SPAWN_ERRORS = new Set(['ENOENT', 'EACCES', 'ENOEXEC', 'ENOTDIR', 'ERR_INVALID_ARG_VALUE']);

interface Ending {
  readonly code?: number;
  readonly signal?: string;
}

interface Watched {
  readonly pid: number;
  readonly startTime: string | undefined;
  /** Started by this agent, which therefore learns how it ends. */
  readonly child: boolean;
  checkedAtMs: number;
  ended?: Ending;
  /** Aborted when it ends, to wake who waits for that. */
  readonly gone: AbortController;
}

interface Sweep {
  readonly atMs: number;
  readonly index: Promise<ReadonlyMap<string, readonly number[]>>;
}

@injectable()
export class DetachedSupervisor implements Supervisor {
  private readonly watched = new Map<string, Watched>();
  private readonly locks = new KeyedMutex();
  private readonly listeners = new Set<(pidFile: string) => void>();
  private sweep: Sweep | undefined;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    @inject(HOST_FACTS) private readonly facts: HostFacts,
    @inject(SUPERVISOR_OPTIONS) private readonly options: SupervisorOptions,
  ) {}

  readonly start = (request: StartRequest, signal: AbortSignal): Promise<{ readonly pid: number }> =>
    this.locks.run(request.pidFile, () => this.startLocked(request, signal), signal);

  readonly observe = async (ref: ProcessRef, signal: AbortSignal): Promise<ProcessState> =>
    this.look(ref, false, signal);

  readonly signal = async (ref: ProcessRef, name: ProcessSignal): Promise<'sent' | 'gone'> => {
    const state = await this.look(ref, true);
    if (state.state === 'absent' || state.state === 'exited') return 'gone';
    const what = `send ${name} to the process of ${ref.pidFile}`;
    if (state.state === 'unknown') throw retryable(`${what}: ${state.why}`);
    try {
      this.options.signalProcess(state.pid, name);
      return 'sent';
    } catch (cause) {
      if (systemCode(cause) === 'ESRCH') return 'gone';
      throw retryable(`${what} (pid ${state.pid}): refused, it may live on`, { cause });
    }
  };

  readonly waitGone = async (ref: ProcessRef, timeoutMs: number, signal: AbortSignal): Promise<boolean> => {
    const end = this.clock.monotonicMs() + timeoutMs;
    for (;;) {
      const { state } = await this.look(ref, true, signal);
      if (state === 'absent' || state === 'exited') return true;
      const leftMs = end - this.clock.monotonicMs();
      if (leftMs <= 0) return false;
      const gone = this.watched.get(ref.pidFile)?.gone.signal;
      const wake = gone === undefined ? signal : AbortSignal.any([signal, gone]);
      try {
        await this.clock.sleep(Math.min(POLL_MS, leftMs), wake);
      } catch (error) {
        if (signal.aborted) throw error;
      }
    }
  };

  readonly forget = (ref: ProcessRef): Promise<void> =>
    this.locks.run(ref.pidFile, async () => {
      const state = await this.lookNow(ref, true);
      if (state.state === 'alive') throw retryable(`forget ${ref.pidFile}: its process ${state.pid} is alive`);
      if (state.state === 'unknown') throw retryable(`forget ${ref.pidFile}: ${state.why}`);
      await removeDurably(ref.pidFile);
      this.watched.delete(ref.pidFile);
    });

  readonly onExit = (listener: (pidFile: string) => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  private async startLocked(request: StartRequest, signal: AbortSignal): Promise<{ readonly pid: number }> {
    const { identity, pidFile } = request;
    const what = `start ${identity.executable}`;
    if (!holdsPair(['', ...request.args], identity.option, identity.value)) {
      // Without it the process could not be found again by an agent that lost the pidfile.
      throw permanent(`${what}: its arguments do not hold ${identity.option} ${identity.value}`);
    }
    const before = await this.lookNow(request, true);
    if (before.state === 'alive') throw retryable(`${what}: it is alive already, as pid ${before.pid}`);
    if (before.state === 'unknown') throw retryable(`${what}: ${before.why}`);
    if (before.state === 'exited') {
      // What we watched is gone; that says nothing of one which somebody else left behind.
      const other = await this.find(request);
      if (other.state === 'alive') throw retryable(`${what}: it is alive already, as pid ${other.pid}`);
      if (other.state === 'unknown') throw retryable(`${what}: ${other.why}`);
    }

    const { child, watched } = await this.spawnChild(request, what, signal);
    try {
      const startTime = await this.options.table.startTime(watched.pid);
      // Ended within its first milliseconds, it has none any more: the record then only says that it was. Its exit event
      // comes in a moment; a child without start time that lives can't be recorded.
      if (startTime === undefined && !(await this.endsSoon(watched))) {
        throw retryable('its start time can not be read');
      }
      await writeAtomically(
        pidFile,
        formatPidFile({ pid: watched.pid, bootId: this.facts.bootId, startTime: startTime ?? 'ended' }),
      );
    } catch (cause) {
      await this.endUnrecorded(pidFile, watched);
      throw retryable(`${what}: record it in ${pidFile}`, { cause });
    }
    child.unref();
    this.log.info('process.started', { pid: watched.pid, pidFile });
    return { pid: watched.pid };
  }

  private async spawnChild(
    request: StartRequest,
    what: string,
    signal: AbortSignal,
  ): Promise<{ readonly child: ChildProcess; readonly watched: Watched }> {
    const { identity, pidFile } = request;
    await rotateVmmLog(request.logFile);
    const output = await openVmmLog(request.logFile);
    try {
      signal.throwIfAborted();
      const child = spawn(identity.executable, request.args, {
        detached: true,
        stdio: ['ignore', output.fd, output.fd],
        cwd: '/',
        env: this.vmmEnvironment(request.env),
        // Its group is the user's own number: left out, root's group would stay.
        ...(identity.userId === undefined || identity.dropsPrivileges === true
          ? {}
          : { uid: identity.userId, gid: identity.userId }),
      });
      // An unheard 'error' event would end the agent.
      const failed = new Promise<never>((_resolve, reject) => {
        child.on('error', reject);
      });
      failed.catch(() => undefined);
      if (child.pid === undefined) return await failed;

      const watched: Watched = {
        pid: child.pid,
        startTime: undefined,
        child: true,
        checkedAtMs: this.clock.monotonicMs(),
        gone: new AbortController(),
      };
      child.once('exit', (code, name) => {
        this.end(watched, { ...(code === null ? {} : { code }), ...(name === null ? {} : { signal: name }) });
        this.tellExit(pidFile, watched);
      });
      this.watched.set(pidFile, watched);
      await Promise.race([once(child, 'spawn'), failed]);
      return { child, watched };
    } catch (cause) {
      if (signal.aborted && cause === signal.reason) throw cause;
      const wrap = PERMANENT_SPAWN_ERRORS.has(systemCode(cause) ?? '') ? permanent : retryable;
      throw wrap(what, { cause, code: 'VmmFailed' });
    } finally {
      await output.close();
    }
  }

  /** A child that no later agent would know: it must not outlive this call, or it would hold the VM's disk for ever. */
  private async endUnrecorded(pidFile: string, watched: Watched): Promise<void> {
    try {
      if (watched.ended === undefined) this.options.signalProcess(watched.pid, 'SIGKILL');
      await this.endsSoon(watched);
    } catch (err) {
      this.log.error('process.unrecorded.kill-failed', { pid: watched.pid, pidFile, err });
    }
    // One that does not go stays known: it is seen as alive, and nothing is started beside it.
    if (watched.ended !== undefined && this.watched.get(pidFile) === watched) this.watched.delete(pidFile);
  }

  /** Waits for the exit event of a child, which comes when it was reaped; not for ever: it may hang in the kernel. */
  private async endsSoon(watched: Watched): Promise<boolean> {
    if (watched.ended === undefined) await this.clock.sleep(REAP_MS, watched.gone.signal).catch(() => undefined);
    return watched.ended !== undefined;
  }

  private async look(ref: ProcessRef, verify: boolean, signal?: AbortSignal): Promise<ProcessState> {
    if (this.watched.has(ref.pidFile)) return this.lookNow(ref, verify);
    return this.locks.run(ref.pidFile, () => this.lookNow(ref, verify), signal);
  }

  private async lookNow(ref: ProcessRef, verify: boolean): Promise<ProcessState> {
    try {
      const watched = this.watched.get(ref.pidFile);
      return watched === undefined ? await this.find(ref) : await this.probe(watched, verify);
    } catch (error) {
      return { state: 'unknown', why: errorLine(error) };
    }
  }

  /** Whether a process that we know still is what it was. */
  private async probe(watched: Watched, verify: boolean): Promise<ProcessState> {
    if (watched.ended !== undefined) return { state: 'exited', ...watched.ended };
    const answer = this.ask(watched.pid);
    if (answer === 'gone') return this.end(watched, {});
    const due = this.clock.monotonicMs() - watched.checkedAtMs >= RECHECK_MS;
    if (!watched.child && (verify || due || answer === 'refused')) {
      const startTime = await this.options.table.startTime(watched.pid);
      const hidden = startTime === undefined && answer === 'refused';
      if (startTime !== watched.startTime && !hidden) return this.end(watched, {});
      watched.checkedAtMs = this.clock.monotonicMs();
    }
    return answer === 'refused' ? refused(watched.pid) : { state: 'alive', pid: watched.pid };
  }

  /** Looks for a process that an earlier agent started: by its pidfile, else by its command line. */
  private async find(ref: ProcessRef): Promise<ProcessState> {
    const recorded = await this.findRecorded(ref);
    if (recorded !== undefined) return recorded;

    const index = await this.sweepProcesses();
    const { option, value } = ref.identity;
    const pids = index.get(pairKey(option, value)) ?? [];
    if (pids.length === 0) return { state: 'absent' };
    const program = await readProgram(ref.identity);
    const ours: ProcessFacts[] = [];
    let unclear: string | undefined;
    for (const pid of pids) {
      const found = await this.options.table.inspect(pid);
      if (found === undefined) continue;
      const match = matchProcess(found, ref.identity, program, this.options.userId);
      if (match.kind === 'unclear') unclear = match.why;
      if (match.kind === 'ours') ours.push(found);
    }
    const found = eldest(ours);
    if (found === undefined) return unclear === undefined ? { state: 'absent' } : { state: 'unknown', why: unclear };
    const answer = this.ask(found.pid);
    if (answer === 'gone') return { state: 'absent' };
    if (answer === 'refused') return refused(found.pid);
    await this.recordAdopted(ref, found);
    return this.adopt(ref, found, 'command line');
  }

  /** Undefined: no pidfile, or one that proves nothing now. */
  private async findRecorded(ref: ProcessRef): Promise<ProcessState | undefined> {
    // Most looks at VMs that don't run find none, and a read that fails in the thread pool costs ten times this question.
    if (isFree(ref.pidFile)) return undefined;
    let text: string | undefined;
    try {
      text = await readIfThere(ref.pidFile, MAX_PID_FILE_BYTES);
    } catch (error) {
      // Too long, or a folder: garbage, as anything else that is no pidfile. Refused by the system: it can't be told.
      if (systemCode(error) !== undefined) return { state: 'unknown', why: errorLine(error) };
    }
    const evidence = text === undefined ? undefined : parsePidFile(text);
    // Of another boot: whoever has this pid now is a stranger, alive or refusing, and is not even asked.
    if (evidence?.bootId !== this.facts.bootId) return undefined;
    const found = await this.options.table.inspect(evidence.pid);
    if (found?.startTime !== evidence.startTime) return undefined;
    if (!holdsPair(found.argv, ref.identity.option, ref.identity.value)) {
      return {
        state: 'unknown',
        why: `process ${found.pid} is the one of ${ref.pidFile} by its start time, but has no ${ref.identity.option} ${ref.identity.value}`,
      };
    }
    const answer = this.ask(found.pid);
    if (answer === 'gone') return undefined;
    if (answer === 'refused') return refused(found.pid);
    return this.adopt(ref, found, 'pidfile');
  }

  private adopt(ref: ProcessRef, found: ProcessFacts, by: string): ProcessState {
    this.watched.set(ref.pidFile, {
      pid: found.pid,
      startTime: found.startTime,
      child: false,
      checkedAtMs: this.clock.monotonicMs(),
      gone: new AbortController(),
    });
    this.log.info('process.adopted', { pid: found.pid, pidFile: ref.pidFile, by });
    return { state: 'alive', pid: found.pid };
  }

  /** Not fatal: the next agent finds it in the same way. */
  private async recordAdopted(ref: ProcessRef, found: ProcessFacts): Promise<void> {
    try {
      const { pid, startTime } = found;
      await writeAtomically(ref.pidFile, formatPidFile({ pid, startTime, bootId: this.facts.bootId }));
    } catch (err) {
      this.log.warn('process.adopted.unrecorded', { pid: found.pid, pidFile: ref.pidFile, err });
    }
  }

  private ask(pid: number): 'there' | 'gone' | 'refused' {
    try {
      this.options.signalProcess(pid, 0);
      return 'there';
    } catch (cause) {
      const code = systemCode(cause);
      if (code === 'ESRCH') return 'gone';
      if (code === 'EPERM') return 'refused';
      throw retryable(`ask for process ${pid}`, { cause });
    }
  }

  private async sweepProcesses(): Promise<ReadonlyMap<string, readonly number[]>> {
    const nowMs = this.clock.monotonicMs();
    if (this.sweep === undefined || nowMs - this.sweep.atMs > SWEEP_MAX_AGE_MS) {
      const sweep = { atMs: nowMs, index: this.options.table.commandLines().then(indexPairs) };
      this.sweep = sweep;
      sweep.index.catch(() => {
        if (this.sweep === sweep) this.sweep = undefined;
      });
    }
    return this.sweep.index;
  }

  private end(watched: Watched, ending: Ending): ProcessState {
    // The exit event knows more than a look that came before it.
    if (watched.ended === undefined || Object.keys(ending).length > 0) watched.ended = ending;
    watched.gone.abort();
    return { state: 'exited', ...watched.ended };
  }

  private tellExit(pidFile: string, watched: Watched): void {
    this.log.info('process.exited', { pid: watched.pid, pidFile, ...watched.ended });
    for (const listener of [...this.listeners]) {
      try {
        listener(pidFile);
      } catch (err) {
        this.log.error('process.exit-listener.failed', { pidFile, err });
      }
    }
  }

  private vmmEnvironment(added: Readonly<Record<string, string>> = {}): Record<string, string> {
    const kept = Object.entries(this.options.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && VMM_ENVIRONMENT.test(entry[0]),
    );
    return { ...Object.fromEntries(kept), ...added };
  }
}

const refused = (pid: number): ProcessState => ({
  state: 'unknown',
  why: `process ${pid} is this VM's, but this user may not signal it`,
});

/** Whether surely nothing stands there. What can't be told is looked at by reading it. */
function isFree(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

async function readProgram(identity: ProcessIdentity): Promise<Program> {
  const path = identity.executable;
  const real = await realpath(path).catch(() => path);
  return { paths: [...new Set([path, real])], script: await isScript(real) };
}

async function isScript(path: string): Promise<boolean> {
  try {
    const file = await open(path);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0);
      return bytesRead === 2 && buffer.toString('latin1') === '#!';
    } finally {
      await file.close();
    }
  } catch {
    return false;
  }
}
