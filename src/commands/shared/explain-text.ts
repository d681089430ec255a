/**
 * Why a VM is as it is, as text for people. Pure.
 */
import { harmless } from '@eitri/core/kit';
import type { ExplainView } from '@eitri/protocol';
import { wrap } from '../../app/complaint.js';
import { formatEvent } from '../../app/event-printer.js';
import { labelled, stepLines } from './plan-text.js';

const CAUSES = { self: 'by itself', stop: 'as it was told to', hostReboot: 'with its host' } as const;

export function explainText(vm: ExplainView, columns: number, timeOf: (atMs: number) => string): string {
  const { id, wanted, phase, reason, message } = vm;
  const line = (label: string, text: string | undefined): string =>
    text === undefined ? '' : labelled(label, text, columns);
  return [
    `${id}: wanted ${wanted}, is ${phase}${vm.asWanted ? ': as it should be' : ''}\n`,
    line('why', reason === undefined ? undefined : `${reason.code}: ${reason.meaning}`),
    line(reason === undefined ? 'why' : '', message),
    line('said by', reason?.check),
    line('to do', reason?.next),
    line('step', stepText(vm)),
    failureText(vm, columns),
    line('attempts', vm.attempts === 0 ? undefined : `${vm.attempts} failed since it last worked`),
    line('crashes', vm.crashes === 0 ? undefined : `${vm.crashes} since it last ran quietly`),
    line('ended', exitText(vm.lastExit)),
    ...vm.ports
      .filter(({ state }) => state !== 'published')
      .map(({ exposure, state, why = state }) => line('port', `${exposure.hostAddress}:${exposure.hostPort}: ${why}`)),
    vm.plan.steps.length === 0 ? '' : `\nwhat follows\n${stepLines(vm.plan, columns)}`,
    tail('the hypervisor said last', vm.vmmLog),
    tail('its console said last', vm.console),
    vm.events.length === 0 ? '' : '\nits last events\n',
    ...vm.events.map((event) => {
      const text = formatEvent({ ...event, at: Date.parse(event.at) }, timeOf);
      return `${wrap(text, columns, '    ', '  ')}\n`;
    }),
  ].join('');
}

function stepText({ step, failure }: ExplainView): string | undefined {
  if (step === undefined) return undefined;
  if (step.underWay) return `${step.do}, under way`;
  // Told below, with how it ended.
  return failure?.step === step.do ? undefined : `${step.do}, begun last`;
}

/** One cause a line, each below the one that it caused. */
function failureText({ failure }: ExplainView, columns: number): string {
  if (failure === undefined) return '';
  const { step, at, code, permanent, causes } = failure;
  const what = [
    step === undefined ? undefined : `step ${step}`,
    code,
    permanent ? 'not tried again as it is' : undefined,
  ];
  const head = [...what.filter((part) => part !== undefined), at].join(', ');
  const chain = causes.map((cause, depth) => {
    const indent = ' '.repeat(12 + Math.min(depth, 10) * 2);
    return `${wrap(harmless(cause), columns, `${indent}  `, indent)}\n`;
  });
  return [labelled('failed', head, columns), ...chain].join('');
}

function exitText(exit: ExplainView['lastExit']): string | undefined {
  if (exit === undefined) return undefined;
  const code = exit.code === undefined ? undefined : `code ${exit.code}`;
  const how = [CAUSES[exit.cause], code, exit.signal, exit.reason, exit.at].filter((part) => part !== undefined);
  return how.join(', ');
}

/** Lines of a log as they are: broken anew they could not be found again. */
const tail = (title: string, log: ExplainView['console']): string =>
  log === undefined ? '' : `\n${title}\n  ${log.path}\n${log.lines.map((line) => `  | ${harmless(line)}\n`).join('')}`;
