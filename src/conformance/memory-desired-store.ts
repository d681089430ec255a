/**
 * Desired state in memory. It stands for a file, so it is kept over restarts of an agent.
 *
 * A test that plays the control plane sets lives directly (`want`, `tombstone`, `vanish`); `accept` is there for what
 * is above: it fences by lineage and epoch, gives uids, and tells missing VMs from deleted ones, and holds no mass
 * vanish.
 */
import type {
  AcceptOutcome,
  DesiredIssue,
  DesiredLife,
  DesiredSnapshot,
  DesiredState,
  DesiredStore,
  Random,
  VmSpec,
  VmUid,
} from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import { CallLog } from './call-log.js';
import { sampleUid } from './samples.js';

/** How a `MemoryDesiredStore` begins. */
export interface MemoryDesiredStoreOptions {
  readonly calls?: CallLog;
  /** Gives uids to lives that come without. Default: counted ones. */
  readonly random?: Pick<Random, 'uuid'>;
  readonly lineage?: string;
}

/**
 * A `DesiredStore` in memory, with short cuts for a test that declares, deletes and loses VMs. It holds no
 * mass vanishing.
 */
export class MemoryDesiredStore implements DesiredStore {
  readonly calls: CallLog;
  private state: DesiredState | undefined;
  private currentIssues: readonly DesiredIssue[] = [];
  private contact = true;
  private outOfContact: readonly DesiredIssue[] = [];
  private lastUid = 0;
  private lastAbsence = 0;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly options: MemoryDesiredStoreOptions = {}) {
    this.calls = options.calls ?? new CallLog();
  }

  readonly current = (): DesiredState | undefined => this.state;
  readonly issues = (): readonly DesiredIssue[] => [...this.outOfContact, ...this.currentIssues];
  readonly inContact = (): boolean => this.contact;

  readonly setContact = (inContact: boolean, why?: DesiredIssue): void => {
    const before = this.contact;
    this.contact = inContact;
    this.outOfContact = inContact || why === undefined ? [] : [why];
    if (before !== inContact) this.tell();
  };

  readonly onChange = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  readonly settled = (uid: VmUid): Promise<void> =>
    this.calls.around('desiredStore.settled', uid, () => {
      if (this.state !== undefined) this.replace(this.state.lives.filter((l) => l.uid !== uid));
    });

  readonly accept = (snapshot: DesiredSnapshot, signal: AbortSignal): Promise<AcceptOutcome> =>
    this.calls.around('desiredStore.accept', undefined, (): AcceptOutcome => {
      signal.throwIfAborted();
      const { lineage, epoch } = snapshot;
      const before = this.state;
      if (before !== undefined && before.lineage !== lineage) {
        return { kind: 'refused', why: `desired state of lineage ${lineage}, this host belongs to ${before.lineage}` };
      }
      if (before !== undefined && epoch < before.epoch) {
        return { kind: 'refused', why: `epoch ${epoch.toString()} is older than ${before.epoch.toString()}` };
      }
      const lives = this.merge(snapshot, before?.lives ?? []);
      this.currentIssues = snapshot.issues;
      const changed = before?.epoch !== epoch || stableJson(lives) !== stableJson(before.lives);
      const revision = (before?.revision ?? 0) + (changed ? 1 : 0);
      if (changed) {
        this.state = { lineage, epoch, revision, lives };
        this.tell();
      }
      return { kind: 'accepted', revision, changed };
    });

  /** Somebody wants this VM, as it is given here: declares it, or changes it. Returns its uid. */
  want(spec: VmSpec, uid?: VmUid): VmUid {
    const known = this.lives().find((l) => l.id === spec.id && (uid === undefined || l.uid === uid));
    const life: DesiredLife = { kind: 'present', uid: known?.uid ?? uid ?? this.newUid(), id: spec.id, spec };
    this.replace([...this.lives().filter((l) => l.uid !== life.uid), life]);
    return life.uid;
  }

  /** Its control plane deletes it. */
  tombstone(uid: VmUid): void {
    this.change(uid, ({ id, spec }) => ({ kind: 'tombstoned', uid, id, spec, absence: this.newAbsence() }));
  }

  /** A full snapshot does not name it any more. */
  vanish(uid: VmUid, held = false): void {
    this.change(uid, ({ id, spec }) => ({ kind: 'vanished', uid, id, spec, absence: this.newAbsence(), held }));
  }

  /** It is wanted again, as it was. */
  restore(uid: VmUid): void {
    this.change(uid, ({ id, spec }) => ({ kind: 'present', uid, id, spec }));
  }

  private lives(): readonly DesiredLife[] {
    return this.state?.lives ?? [];
  }

  private change(uid: VmUid, to: (life: DesiredLife) => DesiredLife): void {
    this.replace(this.lives().map((l) => (l.uid === uid ? to(l) : l)));
  }

  private replace(lives: readonly DesiredLife[]): void {
    const { lineage, epoch, revision } = this.state ?? {
      lineage: this.options.lineage ?? 'test',
      epoch: 1,
      revision: 0,
    };
    this.state = { lineage, epoch, revision: revision + 1, lives: [...lives].sort(byUid) };
    this.tell();
  }

  private merge(snapshot: DesiredSnapshot, before: readonly DesiredLife[]): readonly DesiredLife[] {
    const lives = new Map(before.map((l) => [l.uid, l]));
    const named = new Set<VmUid>();
    for (const { uid, spec } of snapshot.vms) {
      const known = before.find((l) => l.id === spec.id && (uid === undefined || l.uid === uid));
      const life = known?.uid ?? uid ?? this.newUid();
      named.add(life);
      lives.set(life, { kind: 'present', uid: life, id: spec.id, spec });
    }
    for (const life of before) {
      const { uid, id, spec } = life;
      if (named.has(uid) || snapshot.unreadable.includes(id)) continue;
      const deleted = snapshot.tombstones.some((t) => t.id === id && (t.uid === undefined || t.uid === uid));
      if (life.kind === 'tombstoned') continue;
      const absence = this.newAbsence();
      if (deleted) lives.set(uid, { kind: 'tombstoned', uid, id, spec, absence });
      else if (life.kind === 'present') lives.set(uid, { kind: 'vanished', uid, id, spec, absence, held: false });
    }
    return [...lives.values()].sort(byUid);
  }

  private newUid(): VmUid {
    return this.options.random === undefined ? sampleUid(++this.lastUid) : (this.options.random.uuid() as VmUid);
  }

  private newAbsence(): string {
    return `absence-${String(++this.lastAbsence)}`;
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

const byUid = (a: DesiredLife, b: DesiredLife): number => (a.uid < b.uid ? -1 : 1);
