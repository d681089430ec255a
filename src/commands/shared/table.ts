/**
 * Tables for people. Pure: rows in, text out. At a terminal the columns that may shrink give way until it fits; where
 * there is none, nothing is cut. Sentences are never cut, but broken.
 */
import { harmless } from '@eitri/core/kit';
import { wrap } from '../../app/complaint.js';

export interface Column<T> {
  readonly title: string;
  readonly of: (row: T) => string;
  readonly right?: boolean;
  /** May be cut, down to this many characters. */
  readonly shrinkTo?: number;
}

const GAP = '  ';

export function table<T>(rows: readonly T[], columns: readonly Column<T>[], width: number | undefined): string {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ of }) => clean(of(row))))];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
  if (width !== undefined) shrink(widths, columns, width);
  const lines = cells.map((line) =>
    line
      .map((cell, at) => fit(cell, widths[at] ?? 0, columns[at]?.right === true))
      .join(GAP)
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}

/** What a guest or a tool said must not steer the terminal. */
const clean = (text: string): string => harmless(text).trim();

function shrink<T>(widths: number[], columns: readonly Column<T>[], width: number): void {
  const total = (): number => widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1);
  // The last column first: it holds what is least needed to tell the rows apart.
  for (let at = columns.length - 1; at >= 0; at--) {
    const least = columns[at]?.shrinkTo;
    const now = widths[at];
    if (least === undefined || now === undefined || now <= least) continue;
    widths[at] = Math.max(least, now - Math.max(0, total() - width));
  }
}

function fit(text: string, width: number, right: boolean): string {
  const cut = text.length > width ? `${text.slice(0, Math.max(0, width - 1))}…` : text;
  return right ? cut.padStart(width) : cut.padEnd(width);
}

/** A name and its value. Sentences are broken where they are too long; all else is one line, there to be copied. */
export type Field = readonly [name: string, value: string | undefined, kind?: 'sentence'];

/** `name   value` lines; what has no value is left out. */
export function fields(rows: readonly Field[], columns: number): string {
  const there = rows.flatMap(([name, value, kind]) =>
    value === undefined || value === '' ? [] : [{ name, text: clean(value), kind }],
  );
  const width = Math.max(0, ...there.map(({ name }) => name.length)) + GAP.length;
  return there
    .map(({ name, text, kind }) => {
      const head = name.padEnd(width);
      return kind === 'sentence' ? `${wrap(text, columns, ' '.repeat(width), head)}\n` : `${head}${text}\n`;
    })
    .join('');
}
