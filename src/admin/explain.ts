/**
 * Why a VM is as it is: all that is known of it in one bounded answer, from memory and from the ends of its two logs.
 *
 * Never tells anything of its declaration but what stands in its way: user-data may hold secrets.
 */
import type { Clock, VmRecord, VmStatus } from '@eitri/core/contracts';
import { errorLine, lastLogLines } from '@eitri/core/kit';
import { REASONS } from '@eitri/core/reconcile';
import type { StepTrouble, VmPlan } from '@eitri/core/reconcile';
import { ADMIN_LIMITS, eventView, vmSummary, type ExplainView } from '@eitri/protocol';
import { readLogEnd } from './follow.js';
import { vmPlanView } from './plan-views.js';
import type { AgentView } from './ports.js';
import { failureView, lastExitView } from './views.js';

const CAUSE_CHARS = 2_000;

export async function explainView(agent: AgentView, clock: Clock, status: VmStatus): Promise<ExplainView> {
  const { uid } = status;
  const record = agent.record(uid);
  const plan = agent.plan().find((one) => one.uid === uid) ?? nothingKnown(status);
  const failure = failureOf(record, agent.trouble(uid));
  const message = messageOf(status, plan);
  const step = stepOf(plan, record, agent.trouble(uid));
  const paths = agent.pathsOf(uid);
  const [vmmLog, console] = await Promise.all([endOf(paths.vmmLog), endOf(paths.serialLog)]);
  const events = agent.eventsSince(0).filter((event) => event.uid === uid);
  const { id, wanted, phase, ports } = vmSummary(status);
  return {
    ...{ uid, id, wanted, phase, asWanted: plan.asWanted },
    ...(status.reason === undefined ? {} : { reason: { code: status.reason, ...REASONS[status.reason] } }),
    ...(message === undefined ? {} : { message }),
    ...(step === undefined ? {} : { step }),
    ...(failure === undefined ? {} : { failure }),
    attempts: record?.attempts ?? 0,
    crashes: record?.crashes ?? 0,
    ...(record?.lastExit === undefined ? {} : { lastExit: lastExitView(record.lastExit) }),
    ports,
    plan: vmPlanView(plan, phase, clock.now()),
    ...(vmmLog === undefined ? {} : { vmmLog }),
    ...(console === undefined ? {} : { console }),
    events: events.slice(-ADMIN_LIMITS.explainEvents).map(eventView),
  };
}

/** In the words of this moment, where they are the same: what was said at the last look may count down. */
function messageOf({ reason, message }: VmStatus, { steps, end }: VmPlan): string | undefined {
  const [first] = steps;
  const now = first === undefined ? (end.kind === 'rest' ? end.rest : undefined) : first.waited;
  return now?.reason === reason && now?.message !== undefined ? now.message : message;
}

/** It went between two looks. */
const nothingKnown = ({ uid, id, wanted, phase }: VmStatus): VmPlan => ({
  ...{ uid, id, wanted, steps: [], asWanted: false },
  end: { kind: 'rest', inMs: 0, rest: { do: 'rest', phase } },
});

/** What is at work comes first; then what failed; then what was begun last, as the record tells it. */
function stepOf(plan: VmPlan, record: VmRecord | undefined, trouble: StepTrouble | undefined): ExplainView['step'] {
  const [first] = plan.steps;
  if (first?.underWay === true) return { do: first.do, underWay: true };
  const last = trouble?.step ?? record?.intent?.step;
  return last === undefined ? undefined : { do: last, underWay: false };
}

/** The chain as this agent saw it; of an earlier agent's failure, the one line that the record keeps. */
function failureOf(record: VmRecord | undefined, trouble: StepTrouble | undefined): ExplainView['failure'] {
  if (trouble !== undefined) {
    const { step, at, code, causes, permanent } = trouble;
    return {
      ...{ step, at: new Date(at).toISOString(), permanent },
      ...(code === undefined ? {} : { code }),
      causes: causes.map((cause) => cause.slice(0, CAUSE_CHARS)),
    };
  }
  if (record?.failure === undefined) return undefined;
  const { message, ...failure } = failureView(record.failure);
  return { ...failure, causes: [message.slice(0, CAUSE_CHARS)] };
}

/** The last lines of a log; undefined where there is none, or where it says nothing. */
async function endOf(path: string): Promise<ExplainView['vmmLog']> {
  const { explainBytes, explainLines, explainLineChars } = ADMIN_LIMITS;
  try {
    const end = await readLogEnd(path, { tailBytes: explainBytes, lines: undefined });
    const lines = lastLogLines(end.toString('utf8'), { lines: explainLines, chars: explainLineChars });
    return lines.length === 0 ? undefined : { path, lines: [...lines] };
  } catch (error) {
    // A log that can't be read must not hide all the rest.
    return { path, lines: [`(it can't be read: ${errorLine(error)})`] };
  }
}
