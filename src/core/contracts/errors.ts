/**
 * What an error carries across a package border: its kind, by which the agent decides whether to try again.
 *
 * *permanent*: nothing is retried until the input changes, because it would fail in the same way. *retryable*: anything
 * else, and what an unbranded error counts as. *bug*: an invariant broke. Errors are told apart by a brand, never by
 * `instanceof`: a plugin brings its own copy of every class. The constructors are in `kit/errors`; a plugin gets them
 * from its `BackendHost`.
 */
export type ErrorKind = 'permanent' | 'retryable' | 'bug';

/**
 * Machine-readable reasons, stable over versions: status, explain and the report to the control plane use them.
 * `Unknown` is what could not be found out, never a bucket for the rest.
 */
export type ReasonCode =
  | 'Capacity'
  | 'ImageDownloading'
  | 'WaitingRetry'
  | 'RecoveringAfterReboot'
  | 'Throttled'
  | 'ImageNotFound'
  | 'ImageDigestMismatch'
  | 'ImageUnsupported'
  | 'DiskTooSmall'
  | 'SpecInvalid'
  | 'NetworkFailed'
  | 'PortTaken'
  | 'VmmFailed'
  | 'BackendMissing'
  | 'AttemptsExhausted'
  | 'CrashLooping'
  | 'RestartRequired'
  | 'ShelvedTombstoned'
  | 'ShelvedVanished'
  | 'HeldMassVanish'
  | 'HeldByOperator'
  | 'RecordUnreadable'
  | 'StuckPass'
  | 'Unknown';

/** What the brand of an error holds. */
export interface ErrorBrand {
  readonly kind: ErrorKind;
  /** The reason code that a status shows for it; absent where no code says more than the message. */
  readonly code?: ReasonCode;
}

/** The property under which the brand stands. */
export const ERROR_BRAND = Symbol.for('eitri.error@1');

/** Further facts of an error. */
export interface ErrorOptions {
  readonly cause?: unknown;
  readonly code?: ReasonCode;
}

/**
 * The constructors that a plugin is handed, so that it needs no run-time import of ours. They make an error and throw
 * nothing; to be called at any time.
 */
export interface ErrorFactory {
  /** The same input fails again: nothing is retried until it changes. */
  readonly permanent: (message: string, options?: ErrorOptions) => Error;
  /** Worth trying again; as good as an `Error` without a brand, but for its reason code. */
  readonly retryable: (message: string, options?: ErrorOptions) => Error;
  /** An invariant of the plugin's own broke: shown as such, and not retried in silence. */
  readonly bug: (message: string, options?: ErrorOptions) => Error;
}
