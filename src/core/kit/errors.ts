/**
 * Branded errors: made here, told apart here, through any number of causes and package copies.
 *
 * Owns the constructors and the questions. Never throws by itself, never logs.
 */
import { ERROR_BRAND } from '../contracts/errors.js';
import type { ErrorBrand, ErrorFactory, ErrorKind, ErrorOptions, ReasonCode } from '../contracts/errors.js';

const MAX_CAUSES = 16;

function brand(kind: ErrorKind, message: string, options: ErrorOptions = {}): Error {
  const error = options.cause === undefined ? new Error(message) : new Error(message, { cause: options.cause });
  const value: ErrorBrand = options.code === undefined ? { kind } : { kind, code: options.code };
  Object.defineProperty(error, ERROR_BRAND, { value, enumerable: false });
  return error;
}

/** The same input fails again: nothing is retried until it changes. */
export const permanent = (message: string, options?: ErrorOptions): Error => brand('permanent', message, options);
/** Worth trying again. An unbranded error counts as this. */
export const retryable = (message: string, options?: ErrorOptions): Error => brand('retryable', message, options);
/** An invariant of ours broke. */
export const bug = (message: string, options?: ErrorOptions): Error => brand('bug', message, options);

/** The three constructors as one value, as a `BackendHost` hands them out. */
export const errorFactory: ErrorFactory = { permanent, retryable, bug };

function brandOf(error: unknown): ErrorBrand | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  return (error as { [ERROR_BRAND]?: ErrorBrand })[ERROR_BRAND];
}

/** The error and its causes, outermost first; bounded, so that a cycle ends. */
export function causesOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let at: unknown = error;
  while (at !== undefined && at !== null && chain.length < MAX_CAUSES && !chain.includes(at)) {
    chain.push(at);
    at = typeof at === 'object' && 'cause' in at ? at.cause : undefined;
  }
  return chain;
}

const hasKind = (error: unknown, kind: ErrorKind): boolean => causesOf(error).some((e) => brandOf(e)?.kind === kind);

/** Whether anything in the chain is permanent: context added around it does not make it worth a retry. */
export const isPermanent = (error: unknown): boolean => hasKind(error, 'permanent');
/** Whether anything in the chain says that an invariant broke. */
export const isBug = (error: unknown): boolean => hasKind(error, 'bug');

/** The outermost reason code in the chain. */
export function codeOf(error: unknown): ReasonCode | undefined {
  for (const e of causesOf(error)) {
    const code = brandOf(e)?.code;
    if (code !== undefined) return code;
  }
  return undefined;
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  if (typeof error === 'object' && error !== null && 'message' in error) return String(error.message);
  return String(error);
}

const TOLD = Symbol.for('eitri.told@1');

/**
 * Marks an error whose message says all that a person needs, the next step last: what lies below is for the log, and
 * `errorLine` leaves it out. For troubles with a known remedy, behind which the kernel's own words only hide it.
 */
export const told = <E extends Error>(error: E): E =>
  Object.defineProperty(error, TOLD, { value: true, enumerable: false });

/**
 * The chain as one line: `boot web-1: start qemu: permission denied`. A cause that its parent quotes is not repeated, and
 * what lies below a `told` error is left out.
 */
export const errorLine = (error: unknown): string => errorLines(error).join(': ');

/** The same chain, one cause a line, outermost first; never empty. */
export function errorLines(error: unknown): readonly string[] {
  const parts: string[] = [];
  for (const e of causesOf(error)) {
    const text = messageOf(e).trim();
    if (text !== '' && !parts.some((p) => p.includes(text))) parts.push(text);
    if (typeof e === 'object' && e !== null && TOLD in e) break;
  }
  return parts.length === 0 ? ['unknown error'] : parts;
}

/** The `code` of a system error (`ENOENT`), anywhere in the chain. */
export function systemCode(error: unknown): string | undefined {
  for (const e of causesOf(error)) {
    if (typeof e === 'object' && e !== null && 'code' in e && typeof e.code === 'string') return e.code;
  }
  return undefined;
}
