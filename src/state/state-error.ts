/**
 * How trouble with the state directory is told: one sentence with the path and the operator's next step, and the exit
 * code that a command ends with.
 */
import { causesOf, permanent, retryable } from '@eitri/core/kit';
import { writeRemedy } from '../host/atomic-file.js';

/** Can't write state. */
export const EXIT_STATE_UNWRITABLE = 73;
/** Another agent is at work: try again later. */
export const EXIT_STATE_BUSY = 75;
/** The state is there and can't be understood. */
export const EXIT_STATE_BAD = 65;

const EXIT_CODE = Symbol.for('eitri.exit-code@1');

export function withExitCode(error: Error, exitCode: number): Error {
  Object.defineProperty(error, EXIT_CODE, { value: exitCode, enumerable: false });
  return error;
}

/** The exit code that the outermost error of a chain asks for; undefined: none does. */
export function exitCodeOf(error: unknown): number | undefined {
  for (const cause of causesOf(error)) {
    const code = typeof cause === 'object' ? (cause as { readonly [EXIT_CODE]?: number })[EXIT_CODE] : undefined;
    if (code !== undefined) return code;
  }
  return undefined;
}

/** After a failed write: what could not be written, and what helps. Worth a retry: space and permissions come back. */
export function stateWriteError(what: string, path: string, cause: unknown): Error {
  const remedy = writeRemedy(cause) ?? 'see to it, or give another --state-dir';
  return withExitCode(retryable(`${what} at ${path}: ${remedy}`, { cause }), EXIT_STATE_UNWRITABLE);
}

/** A file that is there and can't be understood: never taken for an empty one, never written over. */
export function stateBadError(path: string, why: string, cause?: unknown): Error {
  const message = `${path}: ${why}; mend it, or put a backup in its place`;
  return withExitCode(permanent(message, { cause, code: 'RecordUnreadable' }), EXIT_STATE_BAD);
}
