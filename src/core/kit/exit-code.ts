/**
 * How a command ends: the exit codes, which are documented and stable, and errors that carry one. The one place that
 * knows how an error carries it; by a symbol of the whole process, so that a second copy of this package reads it too.
 *
 * Whoever knows best gives the code, which is whoever stands nearest to the trouble: an outer layer's code counts only
 * where nothing below gave one (`withExitCode`), unless it says so on purpose (`exitError`).
 */
import { causesOf } from './errors.js';

/** The exit codes by name. A code keeps its meaning over versions. */
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

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const EXIT_CODE = Symbol.for('eitri.exit-code@1');

const give = <E extends Error>(error: E, code: ExitCode): E =>
  Object.defineProperty(error, EXIT_CODE, { value: code, enumerable: false });

/** An error that ends the command with this code. `message` is one sentence, with the next step. */
export function exitError(code: ExitCode, message: string, cause?: unknown): Error {
  return give(cause === undefined ? new Error(message) : new Error(message, { cause }), code);
}

/** Gives an error its code, unless it, or one of its causes, has one. */
export function withExitCode<E extends Error>(error: E, code: ExitCode): E {
  return exitCodeOf(error) === undefined ? give(error, code) : error;
}

/** The code that the outermost error of a chain carries; undefined: none does. */
export function exitCodeOf(error: unknown): ExitCode | undefined {
  for (const cause of causesOf(error)) {
    const code = typeof cause === 'object' ? (cause as { readonly [EXIT_CODE]?: ExitCode })[EXIT_CODE] : undefined;
    if (code !== undefined) return code;
  }
  return undefined;
}
