/**
 * Which VM an operator means: by name, or by uid where a name means two lives (one that goes, one that comes).
 */
import type { ActualState, AgentEvent, VmStatus } from '@eitri/core/contracts';
import { nearest } from '@eitri/core/kit';
import { AdminError } from './admin-error.js';
import type { AgentView } from './ports.js';

/** Throws `notFound` with the nearest known name, or `ambiguous` with the uids to choose from. */
export function findVm(report: ActualState, word: string): VmStatus {
  const byUid = report.vms.find((vm) => vm.uid === word);
  if (byUid !== undefined) return byUid;
  const named = report.vms.filter((vm) => vm.id === word);
  const [only, second] = named;
  if (only === undefined) throw notFound(report, word);
  if (second === undefined) return only;
  const declared = named.filter((vm) => vm.wanted === 'running' || vm.wanted === 'stopped');
  const [wanted] = declared;
  if (wanted !== undefined && declared.length === 1) return wanted;
  const uids = named.map((vm) => `${vm.uid} (${vm.phase})`).join(', ');
  throw new AdminError('ambiguous', `${word} is the name of ${named.length} VMs: say which by uid: ${uids}`);
}

/**
 * Which events a word means: those of one life for its uid, those of all lives of a name for that, also when none of them
 * is left. Throws `notFound` for what nothing was ever heard of.
 */
export function eventsAbout(
  word: string,
  agent: Pick<AgentView, 'report' | 'eventsSince'>,
): (of: AgentEvent) => boolean {
  const report = agent.report();
  const events = agent.eventsSince(0);
  if (report.vms.some((vm) => vm.uid === word) || events.some((event) => event.uid === word)) {
    return (event) => event.uid === word;
  }
  const known = report.vms.some((vm) => vm.id === word) || events.some((event) => event.id === word);
  if (!known) throw notFound(report, word);
  return (event) => event.id === word;
}

const MAX_SHOWN_CHARS = 80;

export function notFound(report: ActualState, word: string): AdminError {
  const names = [...new Set(report.vms.map((vm) => vm.id))];
  const shown = word.length > MAX_SHOWN_CHARS ? `${word.slice(0, MAX_SHOWN_CHARS)}…` : word;
  return new AdminError('notFound', `no VM is called "${shown}"${hint(word, names)}`);
}

const MANY = 5;

function hint(word: string, names: readonly string[]): string {
  const near = nearest(word.slice(0, MAX_SHOWN_CHARS), names);
  if (near !== undefined) return `; did you mean ${near}?`;
  if (names.length === 0) return ': this host has none';
  const more = names.length > MANY ? `, and ${names.length - MANY} more` : '';
  return `; there are ${names.slice(0, MANY).join(', ')}${more}`;
}
