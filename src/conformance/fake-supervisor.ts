/**
 * Processes in memory, for tests of a backend: what was started, with which arguments, and which signals it got.
 *
 * `host` (a map) outlives the supervisor: a new one over the same map is a restart of the agent, and finds by pidfile
 * what the old one started; of its end it learns no code.
 */
import type { ProcessRef, ProcessSignal, ProcessState, StartRequest, Supervisor } from '@eitri/core/contracts';
import { retryable } from '@eitri/core/kit';
import { CallLog } from './call-log.js';

/** A process of a `FakeSupervisor`. */
export interface FakeProcess {
  readonly request: StartRequest;
  readonly pid: number;
  readonly signals: ProcessSignal[];
  ended: { readonly code?: number; readonly signal?: string } | undefined;
}

/** What becomes of a process at a signal. */
export type SignalEffect = 'ends' | 'ignored' | 'refused';

/** What a `FakeSupervisor` is joined to. */
export interface FakeSupervisorOptions {
  readonly calls?: CallLog;
  /** By pidfile. */
  readonly host?: Map<string, FakeProcess>;
}

/** A `Supervisor` without processes: they are entries that a test can end, lose, or make unclear. */
export class FakeSupervisor implements Supervisor {
  readonly calls: CallLog;
  readonly processes: Map<string, FakeProcess>;
  /** What a signal does. Default: every one ends its process, but the one that asks to reload. */
  effectOf: (process: FakeProcess, name: ProcessSignal) => SignalEffect = (_process, name) =>
    name === 'SIGHUP' ? 'ignored' : 'ends';
  /** Set: nothing can be told of any process, for this reason. */
  unknown: string | undefined;
  /** Set: called when a process was started; may end it, or make its sockets. */
  onStart: ((process: FakeProcess) => void | Promise<void>) | undefined;
  private readonly children = new Set<string>();
  /** Seen alive: their end is one that this agent watched, without its code where they are not children. */
  private readonly adopted = new Set<string>();
  private lastPid = 2000;
  private readonly exitListeners = new Set<(pidFile: string) => void>();

  constructor(options: FakeSupervisorOptions = {}) {
    this.calls = options.calls ?? new CallLog();
    this.processes = options.host ?? new Map<string, FakeProcess>();
  }

  /** A process ends by itself. */
  end(pidFile: string, ended: { readonly code?: number; readonly signal?: string } = { code: 0 }): void {
    const process = this.processes.get(pidFile);
    if (process === undefined || process.ended !== undefined) return;
    process.ended = ended;
    if (this.children.has(pidFile)) for (const listener of [...this.exitListeners]) listener(pidFile);
  }

  readonly start = (request: StartRequest, signal: AbortSignal): Promise<{ readonly pid: number }> =>
    this.calls.around('supervisor.start', undefined, async () => {
      signal.throwIfAborted();
      if (this.unknown !== undefined) throw retryable(this.unknown);
      const there = this.processes.get(request.pidFile);
      if (there !== undefined && there.ended === undefined)
        throw retryable(`pid ${there.pid.toString()} is alive already`);
      const pid = Math.max(this.lastPid, ...[...this.processes.values()].map((p) => p.pid)) + 1;
      this.lastPid = pid;
      const process: FakeProcess = { request, pid, signals: [], ended: undefined };
      this.processes.set(request.pidFile, process);
      this.children.add(request.pidFile);
      await this.onStart?.(process);
      return { pid };
    });

  readonly observe = (ref: ProcessRef, signal: AbortSignal): Promise<ProcessState> =>
    this.calls.around('supervisor.observe', undefined, (): ProcessState => {
      signal.throwIfAborted();
      if (this.unknown !== undefined) return { state: 'unknown', why: this.unknown };
      const process = this.processes.get(ref.pidFile);
      if (process === undefined) return { state: 'absent' };
      if (process.ended === undefined) {
        this.adopted.add(ref.pidFile);
        return { state: 'alive', pid: process.pid };
      }
      if (this.children.has(ref.pidFile)) return { state: 'exited', ...process.ended };
      return this.adopted.has(ref.pidFile) ? { state: 'exited' } : { state: 'absent' };
    });

  readonly signal = (ref: ProcessRef, name: ProcessSignal): Promise<'sent' | 'gone'> =>
    this.calls.around('supervisor.signal', undefined, (): 'sent' | 'gone' => {
      const process = this.processes.get(ref.pidFile);
      if (process === undefined || process.ended !== undefined) return 'gone';
      const effect = this.effectOf(process, name);
      if (effect === 'refused') throw retryable(`kill ${process.pid.toString()}: operation not permitted`);
      process.signals.push(name);
      if (effect === 'ends') this.end(ref.pidFile, { signal: name });
      return 'sent';
    });

  readonly waitGone = (ref: ProcessRef, _timeoutMs: number, signal: AbortSignal): Promise<boolean> =>
    this.calls.around('supervisor.waitGone', undefined, () => {
      // Nothing here ends by waiting: the answer is the same now and later.
      signal.throwIfAborted();
      const process = this.processes.get(ref.pidFile);
      return process === undefined || process.ended !== undefined;
    });

  readonly forget = (ref: ProcessRef): Promise<void> =>
    this.calls.around('supervisor.forget', undefined, () => {
      const process = this.processes.get(ref.pidFile);
      if (process === undefined) return;
      if (process.ended === undefined) throw retryable(`pid ${process.pid.toString()} is alive`);
      this.processes.delete(ref.pidFile);
      this.children.delete(ref.pidFile);
      this.adopted.delete(ref.pidFile);
    });

  readonly onExit = (listener: (pidFile: string) => void): (() => void) => {
    this.exitListeners.add(listener);
    return () => {
      this.exitListeners.delete(listener);
    };
  };
}
