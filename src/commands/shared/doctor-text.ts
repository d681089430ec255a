/**
 * What the doctor found, as text for people. Pure.
 */
import type { Check } from '../../app/doctor.js';
import { wrap } from '../../app/complaint.js';

const LEVEL_COLUMNS = 6;

export function doctorText(checks: readonly Check[], columns: number): string {
  const names = Math.max(0, ...checks.map(({ what }) => what.length)) + 2;
  const indent = ' '.repeat(LEVEL_COLUMNS + names);
  return checks
    .map(({ level, what, detail, next }) => {
      const head = `${level.padEnd(LEVEL_COLUMNS)}${what.padEnd(names)}`;
      const step = next === undefined ? '' : `\n${wrap(next, columns, `${indent}   `, `${indent}-> `)}`;
      return `${wrap(detail, columns, indent, head)}${step}\n`;
    })
    .join('');
}
