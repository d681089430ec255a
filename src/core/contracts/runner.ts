/** One run of a foreign program, waited for. */
export interface RunRequest {
  /** Executable: a path, or a bare name that is looked up on PATH. */
  readonly command: string;
  /** Arguments as they are: no shell ever sees them. */
  readonly args: readonly string[];
  /** Written to its standard input, which is then closed. Default: empty. */
  readonly input?: string;
  /** Limit in milliseconds, after which it is killed. Default 60,000. */
  readonly timeoutMs?: number;
  /** Environment variables added to the agent's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Exit codes that resolve instead of rejecting. Default `[0]`. */
  readonly okCodes?: readonly number[];
}

/** How a program ended that was waited for: with one of `okCodes`. */
export interface RunResult {
  readonly exitCode: number;
  /** Standard output, at most 16 MiB. */
  readonly stdout: string;
  /** The last 64 KiB of standard error. */
  readonly stderr: string;
}

/**
 * Runs short-lived foreign programs (qemu-img, xorriso, ip, nft). Not for VMMs: those belong to the `Supervisor`.
 *
 * Call order: none. Concurrency: any; runs are independent, also of the same program.
 */
export interface Runner {
  /**
   * Runs the program once and waits for its end; as idempotent as the program is. Resolved means that it is gone and
   * ended with one of `okCodes`. Rejects, retryable, with the command and the last line of its standard error: another
   * code, the time limit, more output than fits. Permanent: the executable is missing, or may not be executed. The
   * signal kills the program; the rejection comes when it is gone.
   */
  readonly run: (request: RunRequest, signal: AbortSignal) => Promise<RunResult>;
  /**
   * The absolute path that PATH gives for a bare name (a path answers itself when executable); undefined: not there.
   * Looked up at each call, because a tool may be installed meanwhile. Never rejects for what is not there. No
   * signal: some looks, none of which waits.
   */
  readonly which: (command: string) => Promise<string | undefined>;
}
