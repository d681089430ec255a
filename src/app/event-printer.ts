/**
 * What a person at a terminal sees of a running agent: one line an event, and below them, at a terminal, one line that is
 * drawn anew as downloads, conversions and boots go on. Where no terminal is, progress is told by quarters only, so that
 * a log does not fill with it.
 *
 * Owns the text; what it is written to and how wide that is are given.
 */
import type { AgentEvent } from '@eitri/core/contracts';
import { harmless } from '@eitri/core/kit';

export interface EventPrinterOptions {
  readonly write: (text: string) => void;
  /** Columns of the terminal, asked anew each time; undefined: no terminal. */
  readonly columns: () => number | undefined;
  /** Shows a time: `14:05:09`. */
  readonly timeOf: (atMs: number) => string;
}

const NAME_COLUMNS = 12;
const CLEAR_LINE = '\r\u001b[2K';

/** The part of an event that is shown: the operator API's events have it too. */
export type ShownEvent = Pick<AgentEvent, 'at' | 'level' | 'message'> & {
  readonly id?: string;
  readonly reason?: string;
};

/** `14:05:09 web-1         started`: the whole line, without its end. */
export function formatEvent(event: ShownEvent, timeOf: (atMs: number) => string): string {
  const name = (event.id ?? 'agent').padEnd(NAME_COLUMNS);
  const mark = event.level === 'error' ? 'error: ' : event.level === 'warn' ? 'warning: ' : '';
  const reason = event.reason === undefined ? '' : ` (${event.reason})`;
  return `${timeOf(event.at)} ${name} ${mark}${plain(event.message)}${reason}`;
}

/** A guest's or a tool's words may hold anything: nothing of it may steer the terminal, or begin a line. */
const plain = (text: string): string => harmless(text).trimEnd();

export class EventPrinter {
  /** What goes on now, by VM: the newest word of each. */
  private readonly going = new Map<string, string>();
  /** The quarter that was told last, by VM and kind. */
  private readonly quarters = new Map<string, number>();
  private drawn = false;

  constructor(private readonly options: EventPrinterOptions) {}

  readonly print = (event: AgentEvent): void => {
    if (event.progress === undefined) this.printLine(event);
    else this.printProgress(event, event.progress);
  };

  /** Takes the moving line away: the last thing at the agent's end. */
  readonly end = (): void => {
    this.clear();
    this.going.clear();
  };

  private printLine(event: AgentEvent): void {
    const key = event.id ?? '';
    this.going.delete(key);
    for (const told of this.quarters.keys()) if (told.startsWith(`${key}\n`)) this.quarters.delete(told);
    this.clear();
    this.options.write(`${formatEvent(event, this.options.timeOf)}\n`);
    this.draw();
  }

  private printProgress(event: AgentEvent, fraction: number): void {
    const key = event.id ?? '';
    if (this.options.columns() !== undefined) {
      this.going.set(key, `${event.id === undefined ? '' : `${event.id}: `}${plain(event.message)}`);
      this.clear();
      this.draw();
      return;
    }
    const of = `${key}\n${event.type}`;
    const quarter = Math.floor(Math.min(1, Math.max(0, fraction)) * 4);
    const told = this.quarters.get(of);
    if (told !== undefined && quarter <= told) return;
    this.quarters.set(of, quarter);
    this.options.write(`${formatEvent(event, this.options.timeOf)}\n`);
  }

  private clear(): void {
    if (this.drawn) this.options.write(CLEAR_LINE);
    this.drawn = false;
  }

  private draw(): void {
    const columns = this.options.columns();
    if (columns === undefined || this.going.size === 0) return;
    const text = [...this.going.values()].join('  ');
    // A line as wide as the terminal would wrap, and could not be taken back.
    const most = Math.max(1, columns - 1);
    this.options.write(text.length > most ? `${text.slice(0, most - 1)}…` : text);
    this.drawn = true;
  }
}

/** The local time of day. */
export function localTime(atMs: number): string {
  const at = new Date(atMs);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}
