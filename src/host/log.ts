/**
 * The agent's log: pino behind the `Logger` contract, one JSON object a line with the event's name, to standard error or
 * a file.
 *
 * Never throws and never waits: lines go to a bounded buffer, and what does not fit while the destination is stuck or
 * full is dropped and counted. An error is one line of its chain; a stack only where an invariant of ours broke.
 */
import { openSync } from 'node:fs';
import { pino, type DestinationStream, type Logger as Pino } from 'pino';
import type { LogFields, Logger } from '@eitri/core/contracts';
import { codeOf, errorLine, isBug, isPermanent, systemCode } from '@eitri/core/kit';
import { PRIVATE_FILE_MODE } from './atomic-file.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogOptions {
  readonly level: LogLevel;
  /** A file to append to; absent: standard error. */
  readonly file?: string;
}

const MAX_BUFFERED_BYTES = 2 ** 20;
const STDERR = 2;
/** Never meant to be logged; removed should somebody pass them all the same. */
const SECRETS = ['token', 'credential', 'password', 'privateKey', 'authorization'];

export class PinoLogger implements Logger {
  private constructor(
    private readonly pino: Pino,
    private readonly flushNow: () => void,
  ) {}

  static open(options: LogOptions): PinoLogger {
    const { fd, failure } = openFor(options.file);
    const destination = pino.destination({
      dest: fd,
      sync: false,
      append: true,
      minLength: 0,
      maxLength: MAX_BUFFERED_BYTES,
    });
    // Without a listener a full disk under the log would be an uncaught exception.
    destination.on('error', () => undefined);
    let dropped = 0;
    destination.on('drop', () => {
      dropped++;
    });
    const logger = new PinoLogger(pinoTo(destination, options.level), () => destination.flushSync());
    destination.on('drain', () => {
      if (dropped === 0) return;
      const lines = dropped;
      dropped = 0;
      logger.warn('log.dropped', { lines });
    });
    if (failure !== undefined) logger.warn('log.file.failed', { file: options.file, err: failure });
    return logger;
  }

  /** To any stream: for tests, and for a destination of the caller's own. */
  static to(stream: DestinationStream, level: LogLevel): PinoLogger {
    return new PinoLogger(pinoTo(stream, level), () => undefined);
  }

  readonly debug = (event: string, fields?: LogFields): void => this.write('debug', event, fields);
  readonly info = (event: string, fields?: LogFields): void => this.write('info', event, fields);
  readonly warn = (event: string, fields?: LogFields): void => this.write('warn', event, fields);
  readonly error = (event: string, fields?: LogFields): void => this.write('error', event, fields);

  readonly child = (fields: LogFields): Logger => {
    try {
      return new PinoLogger(this.pino.child({ ...fields }), this.flushNow);
    } catch {
      return this;
    }
  };

  /** Writes out what is buffered: once, at the end of the process. */
  flush(): void {
    try {
      this.flushNow();
    } catch {
      // Not open yet, or nowhere to write to: there is nobody left to tell.
    }
  }

  private write(level: LogLevel, event: string, fields: LogFields = {}): void {
    try {
      this.pino[level]({ ...fields }, event);
    } catch {
      // A field that can't be serialised costs its line its fields, not the agent its life.
      try {
        this.pino[level]({}, event);
      } catch {
        // No log is no reason to harm a guest.
      }
    }
  }
}

/**
 * Opened here, and not by pino: at the process's end pino throws where its own opening failed or is not done yet. A file
 * that can't be opened costs the log its place, not the agent its life: the lines go to standard error, the first saying why.
 */
function openFor(file: string | undefined): { readonly fd: number; readonly failure?: unknown } {
  if (file === undefined) return { fd: STDERR };
  try {
    return { fd: openSync(file, 'a', PRIVATE_FILE_MODE) };
  } catch (failure) {
    return { fd: STDERR, failure };
  }
}

function pinoTo(stream: DestinationStream, level: LogLevel): Pino {
  return pino(
    {
      level,
      messageKey: 'event',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serialiseError },
      redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '[secret]' },
    },
    stream,
  );
}

function serialiseError(error: unknown): Record<string, unknown> {
  const code = codeOf(error);
  const system = systemCode(error);
  return {
    chain: errorLine(error),
    ...(code === undefined ? {} : { reason: code }),
    ...(system === undefined ? {} : { system }),
    ...(isPermanent(error) ? { permanent: true } : {}),
    ...(isBug(error) && error instanceof Error ? { stack: error.stack } : {}),
  };
}
