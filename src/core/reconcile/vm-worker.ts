/**
 * The one who works on one life of a VM, serially: looks, decides, acts, until there is nothing to do; then waits for a
 * wake, for what the decision asked for, or for a glance that sees something new.
 *
 * Owns the record in memory, its timers, and the VM's status. Never works on two passes at once: a pass that ignores its
 * abort is reported and waited for, not doubled.
 *
 *   idle ──wake, time──► pass: gather → decide ─┬─ rest ──► idle ◄──► glance (each tick; nothing new: nothing done)
 *                          ▲                    └─ action → execute ─┐
 *                          └───────────────────────────◄─────────────┘
 *
 * A glance asks the backend alone, so a tick over many quiet VMs costs little more than the asking. It stands for a pass
 * only where a pass could come to nothing else: all that a decision depends on either is compared, or wakes the worker
 * when it changes (desired state, room, the line), or was named by the decision as a time (`wakeMs`).
 */
import type {
  DesiredLife,
  Logger,
  Observation,
  VmId,
  VmInstance,
  VmRecord,
  VmStatus,
  VmUid,
} from '../contracts/index.js';
import {
  bug,
  codeOf,
  errorLine,
  errorLines,
  formatDuration,
  isPermanent,
  linkAbort,
  retryable,
  stableJson,
  systemCode,
} from '../kit/index.js';
import { ATTEMPTS, phaseWhile, takes } from './actions.js';
import type { Action, ActionName, Rest, StepTrouble } from './actions.js';
import { isQuiet, sameObservation } from './at-rest.js';
import { GuestWatch } from './guest-watch.js';
import { decide, isAlive, isRecovered, phaseOf } from './decide.js';
import type { Facts } from './decide.js';
import type { PlanSubject } from './plan.js';
import type { EnginePorts } from './ports.js';
import { PublishedPorts } from './published-ports.js';
import { instanceOf, withFailure, without } from './record.js';
import { statusOf } from './report.js';
import type { Shown } from './report.js';
import { specDigest } from './spec-change.js';
import { heldBy, needOf } from './needs.js';
import { executors } from './steps.js';
import type { StepContext } from './steps.js';
import { DurationCounter, forgetPast, movedOn } from './timers.js';
import { watched } from './watchdog.js';
import type { WatchOptions } from './watchdog.js';

/** No VM needs that many steps in a row: more is a loop of ours. */
const MAX_STEPS = 64;

/** Steps that may be given up when the declaration changes under them. */
const SUPERSEDABLE: ReadonlySet<ActionName> = new Set(['fetchImage', 'prepareDisk', 'prepareVolumes', 'buildSeed']);

const SUPERSEDED = new Error('superseded by a newer declaration');

export interface WorkerOptions {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly record: VmRecord | undefined;
  readonly ports: EnginePorts;
  /** What its control plane wants of it now. */
  readonly wanted: () => DesiredLife | undefined;
  /** Why it may not be made now, if it has no record. */
  readonly createBlocked: () => string | undefined;
  /** Called after its status changed. */
  readonly changed: () => void;
  /** Called after it let go of something that others may wait for. */
  readonly freed: () => void;
}

export class VmWorker {
  readonly uid: VmUid;
  readonly id: VmId;
  private readonly ports: EnginePorts;
  private readonly log: Logger;
  private memory: VmRecord | undefined;
  private observed: Observation = { state: 'absent' };
  private readonly published = new PublishedPorts();
  private shown: Shown = { phase: 'Pending' };
  /** What was wanted when that was decided. */
  private shownFor = '';
  private lastStatus: VmStatus;
  private looked = false;
  private readonly durations: DurationCounter;
  private lastWriteMs = 0;
  private resumedAtMs: number | undefined;
  private failed: StepTrouble | undefined;
  private woken = false;
  private sleeper: AbortController | undefined;
  /** At rest in a way that a glance can watch; the VM as its backend is told of it. */
  private quiet: VmInstance | undefined;
  private glancing = false;
  private acting: { readonly name: ActionName; readonly wanted: string; readonly abort: AbortController } | undefined;
  private ended = false;
  private readonly guestWatch = new GuestWatch();

  constructor(private readonly options: WorkerOptions) {
    this.uid = options.uid;
    this.id = options.id;
    this.ports = options.ports;
    this.memory = options.record;
    this.durations = new DurationCounter(this.ports.clock, options.wanted());
    this.log = options.ports.log.child({ vmId: options.id, uid: options.uid });
    this.lastStatus = this.buildStatus();
    this.holdWhatIsThere();
  }

  get record(): VmRecord | undefined {
    return this.memory;
  }

  /** The record with its durations as of now: between looks they stand still. */
  recordNow(): VmRecord | undefined {
    this.countTime();
    return this.memory;
  }

  get status(): VmStatus {
    return this.lastStatus;
  }

  /** Whether nothing of this life is left: its worker is done. */
  get done(): boolean {
    return this.ended;
  }

  /** The last step that failed and has not succeeded since, as far as this agent saw it. */
  get trouble(): StepTrouble | undefined {
    return this.failed;
  }

  /**
   * What the next decision would be made from now, from what was last seen; another declaration than the one that holds
   * may be put in its place. Asks nobody and changes nothing.
   */
  foresee(
    wanted: DesiredLife | undefined,
    createBlocked: string | undefined,
  ): Pick<PlanSubject, 'facts' | 'acting' | 'stuck'> {
    const passed = this.durations.uncounted(this.ports.desired.inContact());
    const alive = isAlive(this.observed);
    const observed: Observation =
      this.looked || this.memory === undefined ? this.observed : { state: 'unknown', why: 'it was not looked at yet' };
    const { admission: _verdict, recovery: _place, ...facts } = this.facts(observed);
    const record = this.memory === undefined ? undefined : movedOn(this.memory, { ...passed, alive });
    const { phase, reason, message } = this.lastStatus;
    return {
      facts: { ...facts, record, wanted, createBlocked },
      acting: this.acting?.name,
      stuck: reason === 'StuckPass' ? { do: 'rest', phase, reason, message: message ?? '' } : undefined,
    };
  }

  /** Looks again soon. */
  wake(): void {
    this.woken = true;
    this.sleeper?.abort();
  }

  /** The desired state changed: what is no longer wanted is given up, where that is safe. */
  desiredChanged(): void {
    this.countTime();
    const { acting } = this;
    if (acting !== undefined && SUPERSEDABLE.has(acting.name) && acting.wanted !== this.wantedKey()) {
      acting.abort.abort(SUPERSEDED);
    }
    // Given up was what was declared before: who waits for what is declared now must not read the old answer.
    if (this.shown.phase === 'Failed' && this.shownFor !== this.wantedKey())
      this.show({ do: 'rest', phase: 'Pending' });
    this.wake();
  }

  /** Works until the signal is aborted or nothing of the VM is left. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const over = (): boolean => this.ended || signal.aborted;
    while (!over()) {
      this.woken = false;
      const rest = await this.pass(signal);
      if (over()) return;
      const { tickMs, slowLookMs } = this.ports.policy;
      this.quiet = this.asQuiet(rest);
      const longest = this.quiet === undefined ? tickMs : slowLookMs;
      await this.idle(Math.max(1, Math.min(rest.wakeMs ?? longest, longest)), signal);
      this.quiet = undefined;
    }
  }

  /**
   * Asks the backend whether anything is new with a VM at rest, and wakes the worker if so. Never rejects, and may be
   * called at any time: one that is at work is left to its work, one whose last glance is still unanswered is woken, so
   * that a pass, which has a limit, waits for the answer.
   */
  glance(signal: AbortSignal): void {
    const { quiet, observed } = this;
    if (quiet === undefined) return;
    if (this.glancing) {
      this.wake();
      return;
    }
    this.glancing = true;
    this.ports.platform.provisioner.observe(quiet, signal).then(
      (seen) => {
        this.glancing = false;
        if (this.quiet === quiet && !sameObservation(seen, observed)) this.wake();
      },
      () => {
        this.glancing = false;
        this.wake();
      },
    );
  }

  /** Undefined: a pass must look at it at the next tick. */
  private asQuiet(rest: Rest): VmInstance | undefined {
    const record = this.memory;
    if (record === undefined || this.unseen || record.backend !== this.ports.platform.backend) return undefined;
    // Of one on a named network the address there may change without any other news.
    return isQuiet(rest) && record.spec.networks.length === 0 ? instanceOf(record) : undefined;
  }

  private async idle(ms: number, signal: AbortSignal): Promise<void> {
    if (this.woken) return;
    const sleeper = new AbortController();
    this.sleeper = sleeper;
    const unlink = linkAbort(signal, sleeper);
    try {
      await this.ports.clock.sleep(ms, sleeper.signal);
    } catch {
      // Woken, or the agent ends: either way the loop looks next.
    } finally {
      unlink();
      this.sleeper = undefined;
    }
  }

  /** One pass, bounded by the watchdog. */
  private async pass(signal: AbortSignal): Promise<Rest> {
    const { vmTimeoutMs, stuckAfterMs } = this.ports.policy;
    const overdue = `the pass took longer than --vm-timeout (${formatDuration(vmTimeoutMs)})`;
    const options: WatchOptions = {
      clock: this.ports.clock,
      limitMs: vmTimeoutMs,
      stuckAfterMs,
      signal,
      overdue: () => retryable(overdue),
      onStuck: () => {
        this.showStuck(overdue);
      },
    };
    try {
      return await watched(options, (abort) => this.steps(abort, signal));
    } catch (error) {
      if (!signal.aborted) this.log.error('vm.pass.failed', { err: error });
      const wakeMs = this.ports.policy.tickMs;
      return this.show({ do: 'rest', phase: this.shown.phase, message: errorLine(error), wakeMs });
    }
  }

  private showStuck(overdue: string): void {
    const step = this.acting?.name;
    this.log.error('vm.pass.stuck', { step });
    this.ports.recovery.leave(this.uid);
    const message = `${overdue} and ignores its end${step === undefined ? '' : ` in step ${step}`}`;
    this.show({ do: 'rest', phase: this.shown.phase, reason: 'StuckPass', message });
  }

  private async steps(abort: AbortController, agent: AbortSignal): Promise<Rest> {
    for (let step = 0; step < MAX_STEPS; step++) {
      if (agent.aborted) return { do: 'rest', phase: this.shown.phase };
      const observed = await this.look(abort.signal);
      // No await from here to the reservation: verdict, decision and reservation belong together.
      const facts = this.facts(observed);
      const decision = decide(facts);
      if (decision.do === 'rest') {
        if (isRecovered(decision, this.memory)) this.ports.recovery.leave(this.uid);
        this.holdWhatIsThere();
        this.ended = facts.record === undefined && facts.wanted === undefined;
        this.shownFor = this.wantedKey();
        if (!this.ended) await this.persistTimers();
        this.tellGuest(decision);
        return this.show(this.withRetries(decision));
      }
      if (takes(decision) && this.ports.ledger.hold(this.uid, needOf(facts))) this.options.freed();
      this.showAction(decision);
      const failed = await this.execute(decision, abort, agent);
      if (failed !== undefined) return this.show(failed);
    }
    throw bug(`more than ${MAX_STEPS} steps in one pass`);
  }

  /** What is tried again after a time that no decision knows of: ports that were busy. */
  private withRetries(decision: Rest): Rest {
    if (!this.published.waits) return decision;
    const { portRetryMs } = this.ports.policy;
    return { ...decision, wakeMs: Math.min(decision.wakeMs ?? portRetryMs, portRetryMs) };
  }

  private tellGuest(decision: Rest): void {
    const news = this.guestWatch.look(this.observed, decision.phase, this.memory?.upMs ?? 0);
    if (news !== undefined) this.ports.events.emit({ ...news, uid: this.uid, id: this.id });
  }

  /** Asks the backend, and counts the time that has passed since the last look. */
  private async look(signal: AbortSignal): Promise<Observation> {
    const { provisioner } = this.ports.platform;
    const record = this.memory;
    let observed: Observation = { state: 'absent' };
    if (record?.backend === this.ports.platform.backend) {
      try {
        observed = await provisioner.observe(instanceOf(record), signal);
      } catch (error) {
        signal.throwIfAborted();
        observed = { state: 'unknown', why: errorLine(error) };
      }
      if (isAlive(observed)) await this.learnAddresses(record, signal);
    }
    const wasUnseen = this.unseen;
    // The time until now was spent as it was seen the last time.
    this.countTime();
    this.observed = observed;
    this.looked = true;
    // What was held for a VMM that only might run counts for no boot that is decided on now.
    if (wasUnseen) this.holdWhatIsThere();
    return observed;
  }

  private async learnAddresses(record: VmRecord, signal: AbortSignal): Promise<void> {
    const { provisioner } = this.ports.platform;
    const vm = instanceOf(record);
    try {
      const address = await provisioner.address(vm, signal);
      const networkAddress = record.spec.networks.length > 0 ? await provisioner.networkAddress(vm, signal) : undefined;
      const now = this.memory;
      if (now === undefined) return;
      const news = {
        ...(address === undefined || address === now.address ? {} : { address }),
        ...(networkAddress === undefined || networkAddress === now.networkAddress ? {} : { networkAddress }),
      };
      if (Object.keys(news).length > 0) await this.save({ ...now, ...news });
    } catch (error) {
      signal.throwIfAborted();
      this.log.debug('vm.address.unknown', { err: error });
    }
  }

  /**
   * Moves the record's durations on to now. Before whatever starts one anew: an attempt that failed after ten minutes has
   * not waited for ten minutes, and a VM deleted in a long pass has its whole grace before it.
   */
  private countTime(): void {
    const passed = this.durations.count(this.options.wanted(), this.ports.desired.inContact());
    if (this.memory === undefined) return;
    const moved = movedOn(this.memory, { ...passed, alive: isAlive(this.observed) });
    this.memory = forgetPast(moved, this.options.wanted());
  }

  private async persistTimers(): Promise<void> {
    const record = this.memory;
    if (record?.shelved === undefined) return;
    if (this.ports.clock.monotonicMs() - this.lastWriteMs < this.ports.policy.persistTimersMs) return;
    try {
      await this.save(record);
    } catch (err) {
      // Unwritten, a grace only lasts longer; how the VM stands is said all the same.
      this.log.warn('vm.record.unwritten', { err });
    }
  }

  private facts(observed: Observation): Facts {
    const { platform, policy, host, ledger } = this.ports;
    const nowMs = this.ports.clock.monotonicMs();
    const facts: Facts = {
      record: this.memory,
      wanted: this.options.wanted(),
      observed,
      bootId: host.bootId,
      backend: platform.backend,
      capabilities: platform.capabilities,
      admission: { ok: true },
      recovery: this.ports.recovery.placeOf(this.uid),
      createBlocked: this.options.createBlocked(),
      portsStale: this.published.stale(this.memory, observed, nowMs, policy.portRetryMs),
      resumeDue: this.resumedAtMs === undefined || nowMs - this.resumedAtMs >= policy.resumeRetryMs,
      policy,
    };
    return { ...facts, admission: ledger.verdict(this.uid, needOf(facts)) };
  }

  /** Holds for what runs and what stands, and gives the rest back. */
  private holdWhatIsThere(): void {
    const { ledger, recovery } = this.ports;
    const record = this.memory;
    const runs =
      record !== undefined && (isAlive(this.observed) || this.mayRun(record) || recovery.keepsRoom(this.uid));
    if (ledger.hold(this.uid, heldBy(record, runs))) this.options.freed();
  }

  private get unseen(): boolean {
    return !this.looked || this.observed.state === 'unknown';
  }

  /** Told by the record alone. While nothing was seen yet, a boot that was announced may have started an unrecorded VMM. */
  private mayRun(record: VmRecord): boolean {
    const { bootId } = this.ports.host;
    if (record.bootId === bootId) return true;
    return this.unseen && record.intent?.step === 'boot' && record.intent.bootId === bootId;
  }

  /** Undefined: done, look again. A rest: it failed, and this is how the VM stands now. */
  private async execute(action: Action, pass: AbortController, agent: AbortSignal): Promise<Rest | undefined> {
    const abort = new AbortController();
    const unlink = linkAbort(pass.signal, abort);
    this.acting = { name: action.do, wanted: this.wantedKey(), abort };
    if (action.do === 'resume') this.resumedAtMs = this.ports.clock.monotonicMs();
    try {
      await run(action, this.context(), abort.signal);
      if (this.failed !== undefined && (action.do === 'boot' || action.do === this.failed.step))
        this.failed = undefined;
      if (action.do === 'publish') this.published.answered(this.memory, this.observed, this.ports.clock.monotonicMs());
      return undefined;
    } catch (error) {
      if (agent.aborted) return { do: 'rest', phase: this.shown.phase };
      if (abort.signal.reason === SUPERSEDED) return undefined;
      return await this.noteFailure(action, error);
    } finally {
      this.acting = undefined;
      unlink();
    }
  }

  private async noteFailure(action: Action, error: unknown): Promise<Rest | undefined> {
    const { policy, clock, events } = this.ports;
    const message = errorLine(error);
    const code = codeOf(error) ?? (isFull(error) ? 'Capacity' : action.do === 'boot' ? 'VmmFailed' : undefined);
    this.failed = {
      ...{ step: action.do, at: clock.now(), causes: errorLines(error), permanent: isPermanent(error) },
      ...(code === undefined ? {} : { code }),
    };
    this.log.warn('vm.step.failed', { step: action.do, err: error });
    const again: Rest = {
      do: 'rest',
      phase: phaseWhile(action) ?? phaseOf(this.observed),
      message,
      wakeMs: policy.tickMs,
    };
    if (!ATTEMPTS.has(action.do)) {
      events.emit({
        type: 'vm.step.failed',
        level: 'warn',
        uid: this.uid,
        id: this.id,
        message: `${action.do}: ${message}`,
      });
      return again;
    }
    events.emit({
      type: 'vm.failed',
      level: 'error',
      uid: this.uid,
      id: this.id,
      message,
      ...(code === undefined ? {} : { reason: code }),
    });
    this.countTime();
    const record = this.memory;
    const wanted = this.options.wanted();
    if (record === undefined || wanted === undefined) return { ...again, phase: 'Pending', reason: 'WaitingRetry' };
    const failed = withFailure(record, {
      ...{ code: code ?? 'Unknown', message, permanent: isPermanent(error) },
      ...{ at: clock.now(), specDigest: specDigest(wanted.spec) },
    });
    // In memory it holds at once: a full disk, which may be the failure itself, must not make the retries rush.
    this.memory = failed;
    try {
      await this.save(failed);
    } catch (err) {
      this.log.warn('vm.record.unwritten', { err });
    }
    // The next decision says how it stands: waiting for another attempt, or failed.
    return undefined;
  }

  private context(): StepContext {
    const { events } = this.ports;
    const of = { uid: this.uid, id: this.id };
    return {
      ...of,
      ports: this.ports,
      record: () => {
        this.countTime();
        if (this.memory === undefined) throw bug(`no record of ${this.id} (${this.uid})`);
        return this.memory;
      },
      save: (record) => this.save(record),
      removed: () => {
        this.memory = undefined;
        this.observed = { state: 'absent' };
        this.holdWhatIsThere();
      },
      say: (type, message, level = 'info') => {
        events.emit({ type, level, ...of, message });
      },
      progress: (type, message, fraction) => {
        this.show({ do: 'rest', ...this.shown, message });
        events.emit({ type, level: 'info', ...of, message, progress: fraction ?? 0 });
      },
      throttled: (by) => {
        const { reason: _reason, message: _message, ...shown } = this.shown;
        const message = `waits for its turn: as many as ${by ?? ''} allows are at work`;
        this.show({ do: 'rest', ...shown, ...(by === undefined ? {} : { reason: 'Throttled', message }) });
      },
      setPorts: (ports) => {
        this.published.set(ports);
        for (const port of ports) {
          if (port.state === 'published') continue;
          const { hostAddress, hostPort } = port.exposure;
          const message = `port ${hostAddress}:${hostPort} is not published: ${port.why}`;
          events.emit({ type: 'vm.port.failed', level: 'warn', ...of, message, reason: 'PortTaken' });
        }
      },
    };
  }

  /** Timers that ran on in memory since the caller read the record are not turned back by its write. */
  private async save(record: VmRecord): Promise<void> {
    await this.ports.state.writeRecord(record);
    const shelved = this.memory === undefined ? record.shelved : this.memory.shelved;
    this.memory = { ...without(record, 'shelved'), ...(shelved === undefined ? {} : { shelved }) };
    this.lastWriteMs = this.ports.clock.monotonicMs();
  }

  private wantedKey(): string {
    const wanted = this.options.wanted();
    return wanted === undefined ? 'nobody' : `${wanted.kind} ${specDigest(wanted.spec)}`;
  }

  private showAction(action: Action): void {
    const phase = phaseWhile(action);
    if (phase === undefined) return;
    this.show({ do: 'rest', phase, ...(action.do === 'fetchImage' ? { reason: 'ImageDownloading' } : {}) });
  }

  private show(rest: Rest): Rest {
    this.shown = {
      phase: rest.phase,
      ...(rest.reason === undefined ? {} : { reason: rest.reason }),
      ...(rest.message === undefined ? {} : { message: rest.message }),
    };
    const status = this.buildStatus();
    if (stableJson(status) !== stableJson(this.lastStatus)) {
      this.lastStatus = status;
      this.options.changed();
    }
    return rest;
  }

  private buildStatus(): VmStatus {
    return statusOf({
      uid: this.uid,
      id: this.id,
      record: this.memory,
      wanted: this.options.wanted(),
      observed: this.observed,
      ports: this.published.all,
      shown: this.shown,
    });
  }
}

/** Whether the file system had no room: ours for the VM, or its quota. */
const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(systemCode(error) ?? '');

async function run(action: Action, context: StepContext, signal: AbortSignal): Promise<void> {
  // The map types the pair: the executor of a name takes the action of that name.
  const executor = executors[action.do] as (context: StepContext, action: Action, signal: AbortSignal) => Promise<void>;
  await executor(context, action, signal);
}
