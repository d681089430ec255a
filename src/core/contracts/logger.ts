/** The fields of a log line, e.g. `{ vmId, uid, step, attempt, err }`. Never a secret. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * A structured log. One short event name a line (`vm.boot.failed`), all else in fields; an error goes under `err`.
 * Never throws, never waits: a full disk under the log harms no guest. To be called by anybody, at any time.
 */
export interface Logger {
  /** For whoever looks for a fault in the agent: steps and decisions. Off by default. */
  readonly debug: (event: string, fields?: LogFields) => void;
  /** What happened, when all is well: once for each thing that an operator may ask about. */
  readonly info: (event: string, fields?: LogFields) => void;
  /** Something is not as it should be, and the agent goes on without it or tries again. */
  readonly warn: (event: string, fields?: LogFields) => void;
  /** A thing that was asked for failed. Once for each error, where it is handled for good. */
  readonly error: (event: string, fields?: LogFields) => void;
  /** A logger that adds these fields to each line, beside this one's own. Changes nothing in this one. */
  readonly child: (fields: LogFields) => Logger;
}
