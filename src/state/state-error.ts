/**
 * How trouble with the state directory is told: one sentence with the path and, last, the operator's next step, and the
 * exit code that a command ends with.
 */
import { errorLine, EXIT, permanent, retryable, told, withExitCode } from '@eitri/core/kit';
import { writeAdvice } from '../host/atomic-file.js';

/** After a failed write: what could not be written, and what helps. Worth a retry: space and permissions come back. */
export function stateWriteError(what: string, path: string, cause: unknown): Error {
  const message = `${what} at ${path}: ${writeAdvice(cause, 'give another --state-dir')}`;
  return withExitCode(told(retryable(message, { cause })), EXIT.cantWriteState);
}

/** A file that is there and can't be understood: never taken for an empty one, never written over. */
export function stateBadError(path: string, why: string, cause?: unknown): Error {
  const detail = cause === undefined ? '' : ` (${errorLine(cause)})`;
  const message = `${path}: ${why}${detail}; mend it, or put a backup in its place`;
  return withExitCode(told(permanent(message, { cause, code: 'RecordUnreadable' })), EXIT.badInput);
}
