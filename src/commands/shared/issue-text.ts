/**
 * What was declared and can not be done, as text for people. Pure.
 */
import { harmless } from '@eitri/core/kit';
import type { StatusView } from '@eitri/protocol';
import { wrap } from '../../app/complaint.js';

/** A headline and a paragraph for each, broken at the columns; nothing where there is none. */
export function issuesText(issues: StatusView['issues'], columns: number): string {
  if (issues.length === 0) return '';
  const told = issues.map((one) => {
    const where = [one.source, one.line].filter((part) => part !== undefined).join(':');
    const what = `${where}: ${one.field === undefined ? '' : `${one.field}: `}${one.message}`;
    return `${wrap(harmless(what), columns, '    ', '  ')}\n`;
  });
  return `not done, because of what was declared:\n${told.join('')}`;
}
