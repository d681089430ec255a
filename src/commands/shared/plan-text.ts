/**
 * Plans as text for people. Pure.
 */
import { formatDuration, harmless } from '@eitri/core/kit';
import type { PlanView, VmPlanView } from '@eitri/protocol';
import { wrap } from '../../app/complaint.js';
import { issuesText } from './issue-text.js';

const LABEL_COLUMNS = 10;
const INDENT = ' '.repeat(2 + LABEL_COLUMNS);

/** `label   text`, broken at the columns. */
export function labelled(label: string, text: string, columns: number): string {
  return `${wrap(harmless(text), columns, INDENT, `  ${label.padEnd(LABEL_COLUMNS)}`)}\n`;
}

/** A rest in words: its reason and message, or the phase alone. */
function stands({
  phase,
  reason,
  message,
}: {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
}): string {
  const said = [reason, message].filter((part) => part !== undefined).join(': ');
  if (said === '') return phase ?? '';
  return reason === undefined && phase !== undefined ? `${phase}: ${said}` : said;
}

const inWords = (ms: number): string => (ms < 1_000 ? 'now' : `in ${formatDuration(Math.ceil(ms / 1_000) * 1_000)}`);

/** The lines below a VM's name: its steps, what they wait for, and where they end. */
export function stepLines({ steps, end }: VmPlanView, columns: number): string {
  const lines: string[] = [];
  let shownMs: number | undefined;
  for (const step of steps) {
    if (step.waited !== undefined)
      lines.push(labelled('wait', WAITS[step.waited.phase] ?? stands(step.waited), columns));
    const isThen = step.inMs === shownMs || (step.waited !== undefined && step.inMs === 0);
    const label = step.underWay ? 'under way' : isThen ? 'then' : inWords(step.inMs);
    shownMs = step.inMs;
    lines.push(labelled(label, `${step.what} (${step.why})`, columns));
  }
  if (end.kind === 'gone')
    lines.push(labelled('end', `it is gone${end.message === undefined ? '' : `; ${end.message}`}`, columns));
  else lines.push(labelled(steps.length === 0 ? 'stays' : 'end', stands(end), columns));
  return lines.join('');
}

const WAITS: Readonly<Record<string, string | undefined>> = { Starting: 'until it is up' };

function headline({ id, wanted, phase }: VmPlanView): string {
  return `${id}: wanted ${wanted}, ${phase === undefined ? 'not there yet' : `is ${phase}`}\n`;
}

/** What will be done, and what stays undone and why; VMs that are as wanted are counted. */
export function planText({ vms, issues }: PlanView, columns: number): string {
  const others = vms.filter(({ asWanted }) => !asWanted);
  const blocks = others.map((vm) => `${headline(vm)}${stepLines(vm, columns)}`);
  const acted = others.filter(({ steps }) => steps.length > 0).length;
  const summary = [
    count(acted, 'to change'),
    count(others.length - acted, 'not as wanted, with nothing to be done for now'),
    count(vms.length - others.length, 'as wanted'),
  ].filter((part) => part !== undefined);
  return [
    ...blocks,
    ...(issues.length === 0 ? [] : [issuesText(issues, columns)]),
    vms.length === 0
      ? 'no VMs: nothing to do\n'
      : `${summary.join('; ')}${others.length === 0 ? ': nothing to do' : ''}\n`,
  ].join('\n');
}

const count = (of: number, what: string): string | undefined =>
  of === 0 ? undefined : `${of} ${of === 1 ? 'VM' : 'VMs'} ${what}`;
