/**
 * The log of a run. At a terminal a person reads events, and the log's lines would stand between them: there only
 * warnings' events are seen, and `--log-level debug` brings the lines back.
 */
import type { Logger } from '@eitri/core/contracts';
import { PinoLogger } from '../host/index.js';
import type { LogLevel } from './flags.js';

export interface RunLog {
  readonly log: Logger;
  /** Writes out what is buffered: once, at the end. */
  readonly flush: () => void;
}

export function openLog(level: LogLevel, quiet: boolean): RunLog {
  if (quiet) return { log: silent, flush: () => undefined };
  const log = PinoLogger.open({ level });
  return {
    log,
    flush: () => {
      log.flush();
    },
  };
}

export const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};
