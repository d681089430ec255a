/**
 * What would be done from now on, when nothing fails and nobody changes their mind: `decide` walked forward on copies.
 *
 * Pure. It uses the loop's own `decide`, its ledger and its line of those that come up after a reboot, and leaves behind
 * what the executors leave behind, so that the plan that is shown and the events that follow are the same. VMs take turns,
 * a decision each, as their workers do; what one frees, another one is let take.
 *
 * What can't be known is assumed to go well, and the plan says where: a guest that is asked to power off does so, a VMM
 * that starts comes up. Time passes only where time alone leads on: a grace, a retry, a backoff. It ends where the VM is at
 * rest, waits for somebody, or is gone.
 */
import type { ImageDigest, Observation, VmId, VmPaths, VmRecord, VmStatus, VmUid } from '../contracts/index.js';
import type { Action, ActionName, Rest } from './actions.js';
import { takes } from './actions.js';
import { NOTHING } from './admission-ledger.js';
import type { AdmissionLedger } from './admission-ledger.js';
import { decide, isAlive, isRecovered, stopUnderWay } from './decide.js';
import type { Facts } from './decide.js';
import {
  adopted,
  askedToStop,
  booted,
  calmed,
  ended,
  failureCleared,
  specApplied,
  stopCancelled,
  stopForgotten,
  volumeKeys,
  withDisk,
  withImage,
  withSeed,
  withVolumes,
} from './left-behind.js';
import { heldBy, needOf } from './needs.js';
import { eventsOf, whatOf, whyOf } from './plan-words.js';
import { newRecord } from './record.js';
import { wantedWord } from './report.js';
import type { RecoveryLine } from './recovery.js';
import { absenceOf, forgetPast, movedOn } from './timers.js';

/** One VM as its worker sees it now. */
export interface PlanSubject {
  readonly uid: VmUid;
  readonly id: VmId;
  /** What the next decision would be made from; the planner finds verdict and place by itself. */
  readonly facts: Omit<Facts, 'admission' | 'recovery'>;
  readonly paths: VmPaths;
  /** The step that is carried out now. */
  readonly acting: ActionName | undefined;
  /** Why nothing is decided for it now, whatever its facts are. */
  readonly stuck: Rest | undefined;
}

/** What a plan is made from. Nothing of it is changed. */
export interface PlanInput {
  /** In the order in which they would ask for room. */
  readonly subjects: readonly PlanSubject[];
  readonly ledger: AdmissionLedger;
  readonly recovery: RecoveryLine;
  /** Whether graces count. */
  readonly inContact: boolean;
}

/** What was, or will be, waited for before a step. */
export type Waited = Pick<Rest, 'phase' | 'reason' | 'message'>;

/** A step that will be done. */
export interface PlannedStep {
  readonly do: ActionName;
  /** Counted from now, at the earliest: how long steps take is not known. */
  readonly inMs: number;
  /** It was begun already. */
  readonly underWay: boolean;
  readonly waited?: Waited;
  /** For people: `press its power button`. */
  readonly what: string;
  readonly why: string;
  /** Types of the events that tell of it, in their order, when it succeeds. */
  readonly events: readonly string[];
}

/** Where the walk ends: at a rest that time alone does not end, or with nothing left of the VM. */
export type PlanEnd =
  | { readonly kind: 'rest'; readonly rest: Rest; readonly inMs: number }
  /** `again`: declared meanwhile, it is made anew as another VM. */
  | { readonly kind: 'gone'; readonly again: boolean; readonly inMs: number };

/** What will become of one VM. */
export interface VmPlan {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly wanted: VmStatus['wanted'];
  readonly steps: readonly PlannedStep[];
  readonly end: PlanEnd;
  /** Nothing is to be done, and nothing stands between the VM and what is wanted of it. */
  readonly asWanted: boolean;
}

/** As many steps as a VM may have in a row; a plan that is longer goes in a circle. */
const MAX_STEPS = 64;
/** What is not known before it is fetched. */
const UNKNOWN_IMAGE: ImageDigest = { algorithm: 'sha256', hex: '' };
/** A VMM that is not there yet has no pid; nothing decides by it. */
const FORESEEN: Observation = { state: 'running', pid: 0 };

/** Foresees all VMs together. The plans come in the order of the subjects. */
export function planOf(input: PlanInput): readonly VmPlan[] {
  return new Planner(input).run();
}

interface Walk {
  readonly subject: PlanSubject;
  readonly steps: PlannedStep[];
  facts: PlanSubject['facts'];
  /** The time of its last decision. */
  atMs: number;
  /** Something was taken for granted since: it is not at rest yet. */
  assumed: boolean;
  waited: Waited | undefined;
  end: PlanEnd | undefined;
  /** What it waits for at others. */
  parked: 'capacity' | 'recovery' | undefined;
  /** How often it went on from a rest since its last step. */
  rests: number;
}

class Planner {
  private readonly walks: readonly Walk[];
  private readonly ledger: AdmissionLedger;
  private readonly recovery: RecoveryLine;
  /** Whose turn it is now, in order; `later` by time, then by when they were put there. */
  private now: Walk[] = [];
  private later: { readonly dueMs: number; readonly walk: Walk }[] = [];
  private clockMs = 0;

  constructor(private readonly input: PlanInput) {
    this.ledger = input.ledger.copy();
    this.recovery = input.recovery.copy((uids) => {
      for (const walk of this.walks)
        if (walk.parked === 'recovery' && uids.includes(walk.subject.uid)) this.unpark(walk);
    });
    this.walks = input.subjects.map((subject) => ({
      ...{ subject, steps: [], facts: withPastForgotten(subject.facts), atMs: 0, assumed: false, waited: undefined },
      end: subject.stuck === undefined ? undefined : { kind: 'rest', rest: subject.stuck, inMs: 0 },
      ...{ parked: undefined, rests: 0 },
    }));
    this.now = this.walks.filter(({ end }) => end === undefined);
  }

  run(): readonly VmPlan[] {
    for (let walk = this.next(); walk !== undefined; walk = this.next()) this.turn(walk);
    return this.walks.map(planned);
  }

  private next(): Walk | undefined {
    const walk = this.now.shift();
    if (walk !== undefined) return walk;
    const [first] = this.later;
    if (first === undefined) return undefined;
    this.clockMs = first.dueMs;
    const due = this.later.filter(({ dueMs }) => dueMs === first.dueMs);
    this.later = this.later.slice(due.length);
    this.now = due.map((entry) => entry.walk);
    return this.now.shift();
  }

  private turn(walk: Walk): void {
    this.passTime(walk);
    const { uid } = walk.subject;
    const base = { ...walk.facts, recovery: this.recovery.placeOf(uid) };
    const facts: Facts = { ...base, admission: this.ledger.verdict(uid, needOf(base)) };
    const decision = decide(facts);
    if (walk.rests > MAX_STEPS || walk.steps.length >= MAX_STEPS) walk.end = { ...ENDLESS, inMs: walk.atMs };
    else if (decision.do === 'rest') this.rest(walk, decision);
    else this.act(walk, decision, facts);
  }

  private act(walk: Walk, action: Action, facts: Facts): void {
    const { uid, acting } = walk.subject;
    if (takes(action)) this.free(this.ledger.hold(uid, needOf(facts)));
    walk.steps.push({
      do: action.do,
      inMs: walk.atMs,
      underWay: walk.steps.length === 0 && acting === action.do,
      ...(walk.waited === undefined ? {} : { waited: walk.waited }),
      what: whatOf(action, facts),
      why: whyOf(action, facts),
      events: eventsOf(action, facts),
    });
    walk.waited = undefined;
    walk.rests = 0;
    walk.facts = after(action, walk);
    if (walk.facts.record !== undefined || (action.do !== 'destroy' && action.do !== 'settle')) {
      this.now.push(walk);
      return;
    }
    this.recovery.leave(uid);
    this.free(this.ledger.hold(uid, NOTHING));
    walk.end = { kind: 'gone', again: facts.wanted?.kind === 'present', inMs: walk.atMs };
  }

  private rest(walk: Walk, rest: Rest): void {
    const { uid } = walk.subject;
    const { record, observed } = walk.facts;
    if (isRecovered(rest, record)) this.recovery.leave(uid);
    if (walk.steps.length > 0 || walk.assumed) this.holdWhatIsThere(walk);
    walk.end = { kind: 'rest', rest, inMs: walk.atMs };
    const foreseen = comesOf(rest, observed);
    if (foreseen !== undefined) {
      walk.facts = { ...walk.facts, observed: foreseen };
      walk.assumed = true;
      this.goOn(walk, rest);
    } else if (rest.reason === 'Capacity') walk.parked = 'capacity';
    else if (rest.reason === 'RecoveringAfterReboot') walk.parked = 'recovery';
    // Without a reason nothing stands in its way: what comes of time then is book-keeping.
    else if (rest.reason !== undefined && rest.wakeMs !== undefined && record !== undefined)
      this.goOnLater(walk, rest, rest.wakeMs);
  }

  /** A grace does not run while there is nobody who could take the VM back. */
  private goOnLater(walk: Walk, rest: Rest, wakeMs: number): void {
    if (absenceOf(walk.facts.wanted) !== undefined && !this.input.inContact) {
      const { wakeMs: _never, ...open } = rest;
      const message = `${rest.message ?? ''} (not counted now: the control plane is not in contact)`;
      walk.end = { kind: 'rest', rest: { ...open, message }, inMs: walk.atMs };
      return;
    }
    const dueMs = this.clockMs + Math.max(1, wakeMs);
    const at = this.later.findLastIndex((entry) => entry.dueMs <= dueMs);
    this.later.splice(at + 1, 0, { dueMs, walk });
    walk.end = undefined;
    walk.rests++;
    walk.waited = waitedFor(rest);
  }

  private goOn(walk: Walk, rest: Rest): void {
    walk.end = undefined;
    walk.rests++;
    walk.waited = waitedFor(rest);
    this.now.push(walk);
  }

  private unpark(walk: Walk): void {
    if (walk.end?.kind !== 'rest') return;
    const { rest } = walk.end;
    walk.parked = undefined;
    walk.end = undefined;
    walk.waited = waitedFor(rest);
    this.now.push(walk);
  }

  /** What waits for room asks again. */
  private free(freed: boolean): void {
    if (!freed) return;
    for (const walk of this.walks) if (walk.parked === 'capacity') this.unpark(walk);
  }

  private holdWhatIsThere({ subject: { uid }, facts: { record, observed, bootId } }: Walk): void {
    const runs =
      record !== undefined && (isAlive(observed) || record.bootId === bootId || this.recovery.keepsRoom(uid));
    this.free(this.ledger.hold(uid, heldBy(record, runs)));
  }

  private passTime(walk: Walk): void {
    const { record, wanted, observed } = walk.facts;
    const ms = this.clockMs - walk.atMs;
    walk.atMs = this.clockMs;
    if (record === undefined || ms <= 0) return;
    const missed = this.input.inContact ? absenceOf(wanted) : undefined;
    walk.facts = { ...walk.facts, record: movedOn(record, { ms, alive: isAlive(observed), missed }) };
  }
}

const ENDLESS: { readonly kind: 'rest'; readonly rest: Rest } = {
  kind: 'rest',
  rest: {
    do: 'rest',
    phase: 'Unknown',
    reason: 'Unknown',
    message: 'what follows goes in a circle: this is a bug of the agent',
  },
};

const waitedFor = ({ phase, reason, message }: Rest): Waited => ({
  phase,
  ...(reason === undefined ? {} : { reason }),
  ...(message === undefined ? {} : { message }),
});

const withPastForgotten = (facts: PlanSubject['facts']): PlanSubject['facts'] =>
  facts.record === undefined ? facts : { ...facts, record: forgetPast(facts.record, facts.wanted) };

function planned({ subject: { uid, id, facts }, steps, end, assumed }: Walk): VmPlan {
  const at = end ?? { kind: 'rest', rest: { do: 'rest', phase: 'Unknown', reason: 'Unknown' }, inMs: 0 };
  const quiet = at.kind === 'rest' && at.rest.reason === undefined && at.rest.phase !== 'Paused';
  return {
    uid,
    id,
    wanted: wantedWord(facts.wanted),
    steps,
    end: at,
    asWanted: quiet && steps.length === 0 && !assumed,
  };
}

/** What comes of itself, when all goes well, while nothing is done. */
function comesOf({ phase }: Rest, observed: Observation): Observation | undefined {
  if (phase === 'Stopping' && isAlive(observed)) return { state: 'exited', code: 0 };
  if (phase === 'Starting' && observed.state === 'starting') return { ...observed, state: 'running' };
  return undefined;
}

/** The facts once a step has succeeded. */
function after(action: Action, { facts, subject }: Walk): PlanSubject['facts'] {
  const { uid, id, paths } = subject;
  if (action.do === 'create') {
    return { ...facts, record: newRecord({ uid, id, spec: action.spec, backend: facts.backend, paths, now: 0 }) };
  }
  const { record } = facts;
  if (record === undefined || action.do === 'destroy' || action.do === 'settle') {
    const { record: _gone, wanted: _nobody, ...rest } = facts;
    return { ...rest, record: undefined, wanted: undefined };
  }
  const change = changeOf(action, { ...facts, record });
  return { ...facts, ...change };
}

function changeOf(
  action: Exclude<Action, { do: 'create' | 'destroy' | 'settle' }>,
  facts: PlanSubject['facts'] & { readonly record: VmRecord },
): Partial<Pick<Facts, 'record' | 'observed' | 'portsStale' | 'resumeDue'>> {
  const { record, bootId, observed } = facts;
  const { image = UNKNOWN_IMAGE, imageBytes } = record.prepared;
  switch (action.do) {
    case 'fetchImage':
      return { record: withImage(record, image, imageBytes) };
    case 'prepareDisk':
      return { record: withDisk(record, image, record.spec.diskGib) };
    case 'growDisk':
      return { record: { ...record, diskGib: action.diskGib } };
    case 'prepareVolumes':
      return { record: withVolumes(record, volumeKeys(record.spec)) };
    case 'buildSeed':
      return { record: withSeed(record, []) };
    case 'boot': {
      const runs = { ...booted(record, { bootId, now: 0 }), bootAttempted: true };
      return { record: runs, observed: FORESEEN, portsStale: runs.spec.exposures.length > 0 };
    }
    case 'adopt':
      return { record: adopted(record, { bootId, now: 0 }) };
    case 'noteExit':
      return { record: ended(record, action, { now: 0, reason: undefined }), portsStale: false };
    case 'shutdown': {
      // A shutdown that was taken back is over: as the executor does, it begins anew.
      const stop = stopUnderWay(record);
      return {
        record: askedToStop({ ...record, stop }, action.step, stop),
        // A press may be ignored: only what can't be refused is an end.
        ...(action.step === 'kill' ? { observed: { state: 'exited' } } : {}),
      };
    }
    case 'cancelStop':
      return { record: stopCancelled(record) };
    case 'forgetStop':
      return { record: stopForgotten(record) };
    case 'applySpec': {
      const next = specApplied(record, action);
      const others = volatilePorts(record) !== volatilePorts(next);
      return { record: next, ...(others && isAlive(observed) ? { portsStale: true } : {}) };
    }
    case 'calm':
      return { record: calmed(record) };
    case 'publish':
      return { portsStale: false };
    case 'resume':
      // Whether there is room by now nobody knows: it stands still until it is seen to go on.
      return { resumeDue: false };
    case 'clearFailure':
      return { record: failureCleared(record) };
  }
}

const volatilePorts = ({ spec }: VmRecord): string => JSON.stringify(spec.exposures);
