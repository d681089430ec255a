/**
 * Turns plans into what the operator API tells of them. Pure.
 */
import type { DesiredLife } from '@eitri/core/contracts';
import type { PlanEnd, PlannedStep, VmPlan } from '@eitri/core/reconcile';
import { issueView, type PlanView, type VmPlanView } from '@eitri/protocol';
import { AdminError } from './admin-error.js';
import type { AgentView, Imagined } from './ports.js';

/** A long list of what is wrong is read by nobody. */
const MAX_SHOWN = 50;

/** What would be wanted; manifests that can't be applied are refused with all that is wrong with them. */
export function imagined(of: Imagined): readonly DesiredLife[] {
  if (of.kind === 'lives') return of.lives;
  const more = of.why.length - MAX_SHOWN;
  const rest = more > 0 ? [`and ${more} more`] : [];
  throw new AdminError('invalid', [...of.why.slice(0, MAX_SHOWN), ...rest].join('\n'));
}

export function planView(agent: AgentView, nowMs: number, plans: readonly VmPlan[]): PlanView {
  const phases = new Map(agent.report().vms.map(({ uid, phase }) => [uid, phase]));
  const vms = plans.map((plan) => vmPlanView(plan, phases.get(plan.uid), nowMs));
  return { asWanted: vms.every(({ asWanted }) => asWanted), vms, issues: agent.issues().map(issueView) };
}

/** `phase`: how it is now; undefined: there is no such VM yet, and its uid is a guess of this plan alone. */
export function vmPlanView(plan: VmPlan, phase: VmPlanView['phase'], nowMs: number): VmPlanView {
  const { uid, id, wanted, asWanted, steps, end } = plan;
  return {
    ...(phase === undefined ? {} : { uid, phase }),
    ...{ id, wanted, asWanted },
    steps: steps.map((step) => stepView(step, nowMs)),
    end: endView(end),
  };
}

function stepView({ inMs, waited, events, ...step }: PlannedStep, nowMs: number): VmPlanView['steps'][number] {
  return {
    ...step,
    inMs: Math.round(inMs),
    at: new Date(nowMs + inMs).toISOString(),
    ...(waited === undefined ? {} : { waited }),
    events: [...events],
  };
}

function endView(end: PlanEnd): VmPlanView['end'] {
  const inMs = Math.round(end.inMs);
  if (end.kind === 'rest') {
    const { phase, reason, message } = end.rest;
    return {
      ...{ kind: 'rest', inMs, phase },
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
    };
  }
  return { kind: 'gone', inMs, ...(end.again ? { message: 'declared meanwhile, it is made anew as another VM' } : {}) };
}
