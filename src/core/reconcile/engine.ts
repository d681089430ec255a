/**
 * Makes what is declared true, and keeps it so: one worker a life of a VM, woken by ticks, changes and events.
 *
 * Owns the workers and the report. Never shut down in the sense of its VMs: `quiesce` stops working on them and leaves
 * every guest, and the last report, as they are.
 */
import { setMaxListeners } from 'node:events';
import { inject, injectable } from 'tsyringe';
import {
  CLOCK,
  DESIRED_STORE,
  DISK_SERVICE,
  ENGINE_POLICY,
  EVENT_SINK,
  HOST_FACTS,
  IMAGE_SOURCE,
  LOGGER,
  PLATFORM,
  SEED_SOURCE,
  STATE_STORE,
} from '../contracts/index.js';
import type {
  ActualState,
  Clock,
  DesiredLife,
  DesiredStore,
  DiskService,
  EventSink,
  HostFacts,
  ImageDigest,
  ImageRef,
  ImageSource,
  LoadedRecord,
  Logger,
  Platform,
  SeedSource,
  StateStore,
  VmId,
  VmRecord,
  VmStatus,
  VmUid,
} from '../contracts/index.js';
import { detach, Semaphore } from '../kit/index.js';
import type { StepTrouble } from './actions.js';
import { AdmissionLedger, memoryCap } from './admission-ledger.js';
import type { Need } from './admission-ledger.js';
import { heldBy } from './needs.js';
import { planOf } from './plan.js';
import type { PlanSubject, VmPlan } from './plan.js';
import type { EnginePolicy } from './policy.js';
import type { EnginePorts } from './ports.js';
import { without } from './record.js';
import { RecoveryLine } from './recovery.js';
import { byName } from './report.js';
import { VmWorker } from './vm-worker.js';

/**
 * The engine of one run of the agent. Call order: `start` once, then `wake` and the questions at any time, `quiesce` at
 * the end. No guest is touched by the end.
 */
@injectable()
export class ReconcileEngine {
  private readonly workers = new Map<VmUid, { readonly worker: VmWorker; readonly running: Promise<void> }>();
  private readonly unreadable = new Map<string, Extract<LoadedRecord, { kind: 'unreadable' }>>();
  private readonly listeners = new Set<() => void>();
  private readonly stopping = new AbortController();
  private lives = new Map<VmUid, DesiredLife>();
  private leave: () => void = () => undefined;
  private started = false;

  private readonly ports: EnginePorts;

  constructor(
    @inject(PLATFORM) platform: Platform,
    @inject(STATE_STORE) state: StateStore,
    @inject(DESIRED_STORE) desired: DesiredStore,
    @inject(IMAGE_SOURCE) images: ImageSource,
    @inject(DISK_SERVICE) disks: DiskService,
    @inject(SEED_SOURCE) seeds: SeedSource,
    @inject(CLOCK) clock: Clock,
    @inject(HOST_FACTS) host: HostFacts,
    @inject(EVENT_SINK) events: EventSink,
    @inject(LOGGER) log: Logger,
    @inject(ENGINE_POLICY) policy: EnginePolicy,
  ) {
    // Every worker listens to it, for as long as it works: many listeners are no leak here.
    setMaxListeners(0, this.stopping.signal);
    const ledger = new AdmissionLedger(
      { vcpus: policy.maxVcpus, memoryMib: policy.maxMemoryMib, diskGib: policy.maxDiskGib },
      memoryCap(policy, host.memoryMib),
    );
    this.ports = {
      ...{ platform, state, desired, images, disks, seeds, clock, host, events, log, policy, ledger },
      createGate: new Semaphore(policy.maxConcurrentCreates),
      bootGate: new Semaphore(policy.maxConcurrentBoots),
      recovery: new RecoveryLine({
        width: policy.maxConcurrentBoots,
        reserve: (record) => {
          const need = heldBy(record, true);
          // What is held for a VMM that only might run is no room that it may start in.
          const mightRun = ledger.hold(record.uid, heldBy(record, false));
          const fits = ledger.verdict(record.uid, need).ok;
          if (fits || mightRun) ledger.hold(record.uid, need);
          return fits;
        },
        moved: (uids) => {
          for (const uid of uids) this.wake(uid);
        },
      }),
    };
  }

  /**
   * Reads all records, counts what they hold, and starts to work on every life that is recorded or wanted. Rejects when
   * the records can't be read at all: to go on would be to believe that there are none.
   */
  async start(signal: AbortSignal): Promise<readonly VmRecord[]> {
    const loaded = await this.ports.state.loadRecords(signal);
    const records: VmRecord[] = [];
    for (const entry of loaded) {
      if (entry.kind === 'record') records.push(triedAgain(entry.record));
      else {
        this.unreadable.set(entry.uid, entry);
        this.ports.log.error('record.unreadable', { uid: entry.uid, path: entry.path, why: entry.why });
      }
    }
    this.readDesired();
    this.started = true;
    // All workers first hold what they have, in their constructors, before any of them asks for more.
    const workers = records.map((record) => this.makeWorker(record.uid, record.id, record));
    this.ports.recovery.fill(records, this.ports.host.bootId);
    for (const worker of workers) this.launch(worker);
    this.leave = this.ports.desired.onChange(() => {
      this.desiredChanged();
    });
    this.desiredChanged();
    detach(this.ticks(), this.ports.log, 'engine.ticks.failed');
    return records;
  }

  /** Glances at all VMs that are at rest, as it does by itself every `tickMs`. */
  tick(): void {
    for (const { worker } of this.workers.values()) worker.glance(this.stopping.signal);
  }

  /** Looks at a VM, or at all, at once. */
  wake(uid?: VmUid): void {
    for (const [key, { worker }] of this.workers) if (uid === undefined || key === uid) worker.wake();
  }

  report(): ActualState {
    const vms = [...this.workers.values()].map(({ worker }) => worker.status);
    for (const entry of this.unreadable.values()) vms.push(this.unreadableStatus(entry));
    return { vms: vms.sort(byName) };
  }

  record(uid: VmUid): VmRecord | undefined {
    return this.workers.get(uid)?.worker.recordNow();
  }

  /**
   * What will be done from now on, for every VM, sorted as the report is; `lives`, where given, stand in the place of what
   * is wanted now. Asks nobody and changes nothing.
   */
  plan(lives: readonly DesiredLife[] = [...this.lives.values()]): readonly VmPlan[] {
    const wanted = new Map(lives.map((life) => [life.uid, life]));
    const { ledger, recovery, desired } = this.ports;
    const plans = planOf({
      subjects: this.subjects(wanted),
      ledger,
      recovery,
      inContact: desired.inContact(),
    });
    const unreadable = [...this.unreadable.values()].map((entry) =>
      unreadablePlan(this.unreadableStatus(entry, wanted)),
    );
    return [...plans, ...unreadable].sort(byName);
  }

  /** What failed last of a VM and has not succeeded since. */
  trouble(uid: VmUid): StepTrouble | undefined {
    return this.workers.get(uid)?.worker.trouble;
  }

  /** What all VMs hold together of what this host offers. */
  held(): Need {
    return this.ports.ledger.total();
  }

  /**
   * Digests of the images that a record or a declaration names: what the cache must keep. Undefined: it can't be told,
   * because a record can't be read, and nothing may be evicted. A declaration without a digest names none until its
   * record does.
   */
  imagesInUse(): readonly ImageDigest[] | undefined {
    if (this.unreadable.size > 0) return undefined;
    const records = [...this.workers.values()].flatMap(({ worker }) => worker.record ?? []);
    const named = [...records, ...this.lives.values()].flatMap(({ spec }) => declaredDigest(spec.image) ?? []);
    const digests = [...records.flatMap(({ prepared }) => prepared.image ?? []), ...named];
    return [...new Map(digests.map((digest) => [`${digest.algorithm}:${digest.hex}`, digest])).values()];
  }

  /** Calls back after any status changed. */
  onReport(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  /**
   * Stops working: passes are aborted and waited for, at most `patienceMs`. Guests run on; the report stays. Answers
   * whether all passes ended.
   */
  async quiesce(patienceMs: number): Promise<boolean> {
    this.leave();
    this.stopping.abort(new Error('the agent ends'));
    const all = Promise.all([...this.workers.values()].map(({ running }) => running)).then(() => true);
    const late = new AbortController();
    const timeout = this.ports.clock.sleep(patienceMs, late.signal).then(
      () => false,
      () => true,
    );
    const ended = await Promise.race([all, timeout]);
    late.abort();
    return ended;
  }

  private async ticks(): Promise<void> {
    const { clock, policy } = this.ports;
    for (;;) {
      try {
        await clock.sleep(policy.tickMs, this.stopping.signal);
      } catch {
        return; // the agent ends
      }
      this.tick();
    }
  }

  private readDesired(): void {
    this.lives = new Map((this.ports.desired.current()?.lives ?? []).map((life) => [life.uid, life]));
  }

  private desiredChanged(): void {
    if (!this.started || this.stopping.signal.aborted) return;
    this.readDesired();
    for (const { worker } of this.workers.values()) worker.desiredChanged();
    for (const life of this.newcomers(this.lives)) this.launch(this.makeWorker(life.uid, life.id, undefined));
    this.changed();
  }

  /**
   * Lives that nobody works on yet, by name: where there is not room for all of them, an operator can tell who comes first.
   * A life whose record can't be read is none: what is on its disk is not known.
   */
  private newcomers(lives: ReadonlyMap<VmUid, DesiredLife>): readonly DesiredLife[] {
    return [...lives.values()].filter(({ uid }) => !this.workers.has(uid) && !this.unreadable.has(uid)).sort(byName);
  }

  /** In the order in which they would ask for room: who has no VMM to look at first comes first. */
  private subjects(wanted: ReadonlyMap<VmUid, DesiredLife>): readonly PlanSubject[] {
    const blocked = (id: VmId): string | undefined => this.createBlocked(id, wanted);
    const known = [...this.workers.values()].map(({ worker }): PlanSubject => {
      const { uid, id } = worker;
      return { uid, id, paths: this.ports.state.pathsOf(uid), ...worker.foresee(wanted.get(uid), blocked(id)) };
    });
    const fresh = this.newcomers(wanted).map((life): PlanSubject => {
      const { uid, id } = life;
      const worker = this.makeWorker(uid, id, undefined);
      return { uid, id, paths: this.ports.state.pathsOf(uid), ...worker.foresee(life, blocked(id)) };
    });
    const recorded = known.filter(({ facts }) => facts.record !== undefined);
    return [...fresh, ...known.filter(({ facts }) => facts.record === undefined), ...recorded];
  }

  private makeWorker(uid: VmUid, id: VmId, record: VmRecord | undefined): VmWorker {
    return new VmWorker({
      uid,
      id,
      record,
      ports: this.ports,
      wanted: () => this.lives.get(uid),
      createBlocked: () => this.createBlocked(id),
      changed: () => {
        this.changed();
      },
      freed: () => {
        for (const { worker } of this.workers.values()) if (worker.status.reason === 'Capacity') worker.wake();
      },
    });
  }

  /** Why a life without a record may not be made now: a record that can't be read may be of its name. */
  private createBlocked(id: VmId, lives: ReadonlyMap<VmUid, DesiredLife> = this.lives): string | undefined {
    for (const { uid, path } of this.unreadable.values()) {
      // Who declares the life tells its name; without that it could be any, and its address and ports anybody's.
      const name = lives.get(uid as VmUid)?.id;
      if (name !== undefined && name !== id) continue;
      const whose = name === undefined ? 'it may be of a VM of this name' : 'it is of an earlier VM of this name';
      return `not made while ${path} can't be read: ${whose}: mend or move that file, then restart the agent`;
    }
    return undefined;
  }

  private launch(worker: VmWorker): void {
    const running = worker.run(this.stopping.signal).then(() => {
      if (!worker.done) return;
      this.workers.delete(worker.uid);
      this.changed();
      // Declared again while its last pass ran: it starts anew.
      if (this.lives.has(worker.uid)) this.desiredChanged();
    });
    this.workers.set(worker.uid, { worker, running });
    detach(running, this.ports.log, 'vm.worker.failed');
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  private unreadableStatus(
    entry: { readonly uid: string; readonly path: string; readonly why: string },
    lives: ReadonlyMap<VmUid, DesiredLife> = this.lives,
  ): VmStatus {
    const life = lives.get(entry.uid as VmUid);
    return {
      uid: entry.uid as VmUid,
      id: life?.id ?? (entry.uid as VmId),
      phase: 'Unknown',
      wanted: life === undefined ? 'unknown' : life.kind === 'present' ? life.spec.power : 'unknown',
      reason: 'RecordUnreadable',
      message: `its record can't be read: ${entry.why}; it is left alone: put a copy of ${entry.path} back and restart the agent, or see docs/state-dir.md to give it up`,
      boots: 0,
      hostKeys: [],
      ports: [],
      labels: {},
    };
  }
}

/** A start of the agent is an operator's act: what failed before it is tried again, once more from its first attempt. */
const triedAgain = (record: VmRecord): VmRecord =>
  record.failure === undefined ? record : without({ ...record, attempts: 0, waitedMs: 0 }, 'failure');

const unreadablePlan = ({ uid, id, wanted, phase, reason, message }: VmStatus): VmPlan => ({
  ...{ uid, id, wanted, steps: [], asWanted: false },
  end: {
    kind: 'rest',
    inMs: 0,
    rest: { do: 'rest', phase, ...(reason === undefined ? {} : { reason }), message: message ?? '' },
  },
});

const declaredDigest = (image: ImageRef): ImageDigest | undefined => (image.kind === 'url' ? image.digest : undefined);
