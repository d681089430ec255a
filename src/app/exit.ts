/**
 * How the process ends: exit codes, and errors that carry one. The codes are documented and stable.
 */
export const EXIT = {
  done: 0,
  failed: 1,
  differs: 2,
  usage: 64,
  badInput: 65,
  notFound: 66,
  unreachable: 69,
  cantWriteState: 73,
  tryAgain: 75,
  notPermitted: 77,
  badConfiguration: 78,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const EXIT_CODE = Symbol.for('eitri.exit-code@1');

/** An error that ends the command with this code. `message` is one sentence, with the next step. */
export function exitError(code: ExitCode, message: string, cause?: unknown): Error {
  const error = cause === undefined ? new Error(message) : new Error(message, { cause });
  return withExitCode(error, code);
}

/** Gives an error its code, unless it has one. */
export function withExitCode<E extends Error>(error: E, code: ExitCode): E {
  if (!(EXIT_CODE in error)) Object.defineProperty(error, EXIT_CODE, { value: code, enumerable: false });
  return error;
}

/** The code that an error, or one of its causes, carries. */
export function exitCodeOf(error: unknown): ExitCode | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 16; at = at.cause, depth++) {
    if (EXIT_CODE in at) return (at as { [EXIT_CODE]?: ExitCode })[EXIT_CODE];
  }
  return undefined;
}
