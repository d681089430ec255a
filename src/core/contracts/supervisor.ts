/**
 * Starts a VMM that outlives the agent, finds it again, and signals it, never anybody else's process.
 *
 * A process is ours only if pid, boot id and start time match its pidfile; or, where the agent died between spawn and
 * pidfile, if executable, user and command line match the identity. Anything else is never signalled.
 */
export interface ProcessIdentity {
  /** Absolute path of the executable. */
  readonly executable: string;
  /** The numeric user it runs as; absent: the agent's own. */
  readonly userId?: number;
  /** An argument that only this VM's process has, in its exact place: the option, and the value that follows it. */
  readonly option: string;
  readonly value: string;
}

/** Names one supervised process, whether it lives or not. */
export interface ProcessRef {
  readonly pidFile: string;
  readonly identity: ProcessIdentity;
}

export interface StartRequest extends ProcessRef {
  /** All arguments; they contain the identity's option and value. */
  readonly args: readonly string[];
  /** Standard output and error are appended here (mode 0600): a file and never a pipe, which would end with the agent. */
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

export type ProcessState =
  | { readonly state: 'absent' }
  | { readonly state: 'alive'; readonly pid: number }
  /** Ended while this agent watched; the code is absent where a signal ended it or nobody was there to learn it. */
  | { readonly state: 'exited'; readonly code?: number; readonly signal?: string }
  /** It is there and we may not touch it, or it can't be told whose it is. */
  | { readonly state: 'unknown'; readonly why: string };

export type ProcessSignal = 'SIGTERM' | 'SIGKILL' | 'SIGINT';

export interface Supervisor {
  /**
   * Starts the process in a session of its own and records it in the pidfile before it resolves. Rejects if one is alive
   * already. A child that can't be recorded is killed and reaped before the rejection. The signal is looked at before
   * the spawn only: a process once started is never ended by it.
   */
  readonly start: (request: StartRequest, signal: AbortSignal) => Promise<{ readonly pid: number }>;
  /**
   * What became of it. `exited` is answered until `forget`, or the next start. Adopts a process that was started by an
   * agent which died before it could write the pidfile (and writes it). Cheap: may be called at every tick.
   */
  readonly observe: (ref: ProcessRef, signal: AbortSignal) => Promise<ProcessState>;
  /**
   * Sends a signal. Resolves with `gone` if there was nothing of ours to signal. Rejects when the kernel refused: the
   * process may live on, and its record is the only handle on it. Not skipped by an aborted signal of the caller.
   */
  readonly signal: (ref: ProcessRef, name: ProcessSignal) => Promise<'sent' | 'gone'>;
  /** Resolves when the process is gone, `true`, or when `timeoutMs` passed, `false`. */
  readonly waitGone: (ref: ProcessRef, timeoutMs: number, signal: AbortSignal) => Promise<boolean>;
  /** Removes the pidfile of a process that is gone. Rejects if it is alive. Idempotent. */
  readonly forget: (ref: ProcessRef) => Promise<void>;
  /** Calls back when a process that this agent started ends. Returns the unsubscription. */
  readonly onExit: (listener: (pidFile: string) => void) => () => void;
}
