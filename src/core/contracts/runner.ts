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
 * Concurrent runs are independent. Rejects with a retryable error that quotes the command and the last line of its
 * standard error; a missing executable is a permanent error that names it. The signal kills the program.
 */
export interface Runner {
  readonly run: (request: RunRequest, signal: AbortSignal) => Promise<RunResult>;
  /** The absolute path that PATH gives for a bare name (a path answers itself when executable); undefined: not there. */
  readonly which: (command: string) => Promise<string | undefined>;
}
