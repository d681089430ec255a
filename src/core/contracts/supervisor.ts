/**
 * How one VM's process is told from all others where no pidfile says it: by executable, user and one pair of arguments.
 */
export interface ProcessIdentity {
  /** Absolute path of the executable. */
  readonly executable: string;
  /** The numeric user it runs as; absent: the agent's own. */
  readonly userId?: number;
  /**
   * Set: it is started as the agent's own user and becomes `userId` by itself, as a server does that first opens ports
   * which only root may. Unset: it is started as `userId`.
   */
  readonly dropsPrivileges?: boolean;
  /** An argument that only this VM's process has, in its exact place: the option, and the value that follows it. */
  readonly option: string;
  readonly value: string;
}

/** Names one supervised process, whether it lives or not. */
export interface ProcessRef {
  readonly pidFile: string;
  readonly identity: ProcessIdentity;
}

/** A process to start. */
export interface StartRequest extends ProcessRef {
  /** All arguments; they contain the identity's option and value. */
  readonly args: readonly string[];
  /**
   * Standard output and error are appended here (mode 0600): a file and never a pipe, which would end with the agent.
   */
  readonly logFile: string;
  /** Added to the few variables of the agent's own that a VMM needs (PATH, HOME, locale); no other reaches it. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What became of a supervised process, as far as can be told. */
export type ProcessState =
  | { readonly state: 'absent' }
  | { readonly state: 'alive'; readonly pid: number }
  /** Ended while this agent watched; the code is absent where a signal ended it or nobody was there to learn it. */
  | { readonly state: 'exited'; readonly code?: number; readonly signal?: string }
  /** It is there and we may not touch it, or it can't be told whose it is. */
  | { readonly state: 'unknown'; readonly why: string };

/**
 * The signals that anybody here has a use for. `SIGHUP` is for servers that read their files again at it; a VMM is never
 * sent one.
 */
export type ProcessSignal = 'SIGTERM' | 'SIGKILL' | 'SIGINT' | 'SIGHUP';

/**
 * Starts a VMM that outlives the agent, finds it again, and signals it, never anybody else's process.
 *
 * A process is ours only if pid, boot id and start time match its pidfile; or, where the agent died between spawn and
 * pidfile, if executable, user and command line match the identity. Anything else is never signalled.
 *
 * Call order: `start`, then `observe` and `signal` as often as it takes, `waitGone`, `forget` once it is gone, `start`
 * again. After a restart of the agent each of them may be the first for a process. Concurrency: all members at once,
 * also for one pidfile; `start` and `forget` of one pidfile wait for each other. Errors are retryable where nothing
 * else is said.
 */
export interface Supervisor {
  /**
   * Starts the process in a session of its own and records it in the pidfile before it resolves. Not idempotent:
   * rejects if one is alive already, or if that can't be told. A child that can't be recorded is killed and reaped
   * before the rejection. The signal is looked at before the spawn only: a process once started is never ended by it.
   * Permanent: the executable is missing or can't be executed, or the arguments do not hold the identity's pair, by
   * which a later agent would look for it.
   */
  readonly start: (request: StartRequest, signal: AbortSignal) => Promise<{ readonly pid: number }>;
  /**
   * What became of it. `exited` is answered until `forget`, or the next start. Adopts a process that was started by an
   * agent which died before it could write the pidfile (and writes it); else it changes nothing. Cheap: may be called
   * at every tick. Never rejects for what it sees: what can't be told is `unknown`.
   */
  readonly observe: (ref: ProcessRef, signal: AbortSignal) => Promise<ProcessState>;
  /**
   * Sends a signal, once a call. Resolves with `gone` if there was nothing of ours to signal; `sent` says that the
   * kernel took it, and not that the process ends. Rejects when the kernel refused, or when it can't be told whose it
   * is: the process may live on, and its record is the only handle on it. Takes no signal of its caller: nothing skips
   * a kill.
   */
  readonly signal: (ref: ProcessRef, name: ProcessSignal) => Promise<'sent' | 'gone'>;
  /**
   * Waits, after a signal was sent. Resolves with `true` as soon as the process is gone, with `false` when `timeoutMs`
   * passed and it is not, or when that can't be told. Idempotent: it sends nothing and ends nothing. Rejects only with
   * the reason of its signal, which bounds the waiting.
   */
  readonly waitGone: (ref: ProcessRef, timeoutMs: number, signal: AbortSignal) => Promise<boolean>;
  /**
   * Removes the pidfile of a process that is gone; from then on `observe` answers `absent`. Idempotent. Rejects if it
   * is alive, or if that can't be told: its record is the only handle on it. No signal: one look and one unlink, neither of which waits.
   */
  readonly forget: (ref: ProcessRef) => Promise<void>;
  /**
   * Calls back, once for each, when a process that this agent started ends; the ends of adopted ones are seen by
   * `observe`. Returns the unsubscription, which may be called twice.
   */
  readonly onExit: (listener: (pidFile: string) => void) => () => void;
}
