/** The fields of a log line, e.g. `{ vmId, uid, step, attempt, err }`. Never a secret. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * A structured log. One short event name a line (`vm.boot.failed`), all else in fields; an error goes under `err`.
 * Never throws, never waits: a full disk under the log harms no guest.
 */
export interface Logger {
  readonly debug: (event: string, fields?: LogFields) => void;
  readonly info: (event: string, fields?: LogFields) => void;
  readonly warn: (event: string, fields?: LogFields) => void;
  readonly error: (event: string, fields?: LogFields) => void;
  /** A logger that adds these fields to each line. */
  readonly child: (fields: LogFields) => Logger;
}
