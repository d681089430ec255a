/**
 * Small stand-ins for what every room is handed: a log that remembers, uuids that count.
 */
import type { Logger, LogFields, Random } from '@eitri/core/contracts';
import { sampleUid } from '@eitri/conformance';

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly fields: LogFields;
}

export class MemoryLogger implements Logger {
  constructor(
    readonly lines: LogLine[] = [],
    private readonly own: LogFields = {},
  ) {}

  private readonly say =
    (level: LogLine['level']) =>
    (event: string, fields: LogFields = {}): void => {
      this.lines.push({ level, event, fields: { ...this.own, ...fields } });
    };

  readonly debug = this.say('debug');
  readonly info = this.say('info');
  readonly warn = this.say('warn');
  readonly error = this.say('error');
  readonly child = (fields: LogFields): Logger => new MemoryLogger(this.lines, { ...this.own, ...fields });

  readonly events = (level?: LogLine['level']): readonly string[] =>
    this.lines.filter((line) => level === undefined || line.level === level).map((line) => line.event);
}

/** Counted uuids: the first is `…0001`. Two of them never repeat one another when their ranges differ. */
export class CountedRandom implements Random {
  constructor(private last = 0) {}
  readonly uuid = (): string => sampleUid(++this.last);
  readonly fraction = (): number => 0.5;
  readonly secretBytes = (count: number): Uint8Array => new Uint8Array(count).fill(++this.last);
}
