/**
 * The one door to what shall be: what a control plane said last, as far as it was accepted, in `desired.json`.
 *
 * Owns that file, the fence's answers, the contact flag and the list of issues. Every change is on disk before anybody is
 * told; one that can't be written did not happen. Changes are made one after the other. Never knows which control plane
 * speaks, and never decides what happens to a VM: that is the engine's.
 */
import {
  LOGGER,
  RANDOM,
  type AcceptOutcome,
  type DesiredHolds,
  type DesiredIssue,
  type DesiredLife,
  type DesiredSnapshot,
  type DesiredState,
  type DesiredStore,
  type Logger,
  type Random,
  type VmId,
  type VmSpec,
  type VmUid,
} from '@eitri/core/contracts';
import { bug, errorLine, permanent, Semaphore } from '@eitri/core/kit';
import { inject, injectable } from 'tsyringe';
import { ATOMIC_FILES, type AtomicFiles } from '../host/atomic-file.js';
import { decodeDesired, emptyDesired, encodeDesired, type StoredDesired, type StoredLife } from './desired-file.js';
import { declaredBeside, fence, nextDesired, released, settledLife, type WordOrder } from './transition.js';

/** 10,000 VMs with long user-data; a longer file is not ours. */
const MAX_FILE_BYTES = 256 * 2 ** 20;

export interface DesiredStoreOptions {
  /** `<state>/desired.json`. */
  readonly path: string;
  /** The operator's word that another lineage may take over what stands: once. */
  readonly adopt: boolean;
}

@injectable()
export class FileDesiredStore implements DesiredStore, DesiredHolds {
  private loaded = false;
  private inherited: readonly StoredLife[] = [];
  private stored: StoredDesired | undefined;
  private shown: DesiredState | undefined;
  private adopt: boolean;
  private readonly serial = new Semaphore(1);
  private readonly listeners = new Set<() => void>();

  private contact = false;
  /** Whether the last whole word since contact began was accepted and is what `current` says. */
  private heard = false;
  /** What listeners know of it. */
  private toldContact = false;
  private unreadable: readonly VmId[] = [];
  private said: readonly DesiredIssue[] = [];
  private outOfContact: DesiredIssue | undefined;
  private refusal: DesiredIssue | undefined;
  private writeTrouble: DesiredIssue | undefined;

  constructor(
    @inject(RANDOM) private readonly random: Random,
    @inject(LOGGER) private readonly log: Logger,
    @inject(ATOMIC_FILES) private readonly files: AtomicFiles,
    private readonly options: DesiredStoreOptions,
  ) {
    this.adopt = options.adopt;
  }

  /** Reads the file, once, before anything else is called. Rejects for one that can't be read: the agent must not start. */
  readonly load = async (): Promise<void> => {
    const { path } = this.options;
    try {
      const text = await this.files.readIfThere(path, MAX_FILE_BYTES);
      this.stored = text === undefined ? undefined : decodeDesired(text);
    } catch (cause) {
      throw permanent(
        `the desired state in ${path} can’t be read, so no VM is touched: put back a copy of it, and start again`,
        { cause },
      );
    }
    this.shown = this.stored === undefined ? undefined : stateOf(this.stored);
    this.loaded = true;
  };

  /**
   * Takes up lives that are recorded although nothing is accepted any more (the file is lost): for names that are declared
   * again they are the same lives, and the others are held. Only before the first word, on the operator's.
   */
  readonly inherit = (lives: readonly Pick<StoredLife, 'uid' | 'id' | 'spec'>[]): void => {
    this.checkLoaded();
    if (this.stored !== undefined) return;
    const held = { kind: 'vanished', held: true, given: false } as const;
    this.inherited = lives.map(({ uid, id, spec }) => ({ uid, id, spec, ...held, absence: this.random.uuid() }));
  };

  readonly current = (): DesiredState | undefined => {
    this.checkLoaded();
    return this.shown;
  };

  /** Why `accept` would refuse every word of this lineage and age; undefined: it would hear it. */
  readonly refusalOf = (word: WordOrder): string | undefined => {
    this.checkLoaded();
    return fence(this.stored, word, this.adopt);
  };

  /** What would be wanted if these VMs were declared beside all that stands. Writes nothing; uids of new lives are guesses. */
  readonly imagine = (specs: readonly VmSpec[]): readonly DesiredLife[] => {
    this.checkLoaded();
    const before = this.before({ lineage: '', epoch: 0 }) ?? emptyDesired('', 0);
    return declaredBeside(before, specs, this.random.uuid).map(lifeOf);
  };

  readonly issues = (): readonly DesiredIssue[] => {
    const own = [this.outOfContact, this.refusal, this.writeTrouble, this.holdIssue()];
    return [...own.filter((issue) => issue !== undefined), ...this.said];
  };

  readonly inContact = (): boolean => {
    if (!this.contact || !this.heard) return false;
    // Somebody may just be writing it back: its grace must not count, and graces count for all or for none.
    return !(this.shown?.lives ?? []).some((life) => life.kind !== 'present' && this.unreadable.includes(life.id));
  };

  readonly setContact = (inContact: boolean, why?: DesiredIssue): void => {
    this.contact = inContact;
    this.outOfContact = inContact ? undefined : why;
    // What was said before the silence is no word on what is missing after it.
    if (!inContact) this.heard = false;
    this.tellIf(false);
  };

  readonly onChange = (listener: () => void): (() => void) => {
    // A wrapper each time, so that one function may listen twice.
    const entry = (): void => listener();
    this.listeners.add(entry);
    return () => this.listeners.delete(entry);
  };

  readonly accept = (snapshot: DesiredSnapshot, signal: AbortSignal): Promise<AcceptOutcome> =>
    this.one(async () => {
      const next = nextDesired(this.before(snapshot), snapshot, { adopt: this.adopt, uuid: this.random.uuid });
      if (next.kind === 'refused') {
        this.heard = false;
        this.refusal = { source: 'control plane', message: next.why };
        this.log.warn('desired.refused', { why: next.why, lineage: snapshot.lineage, epoch: snapshot.epoch });
        this.tellIf(false);
        return next;
      }
      try {
        if (next.touched) await this.write(next.state);
      } catch (error) {
        this.heard = false;
        this.tellIf(false);
        throw error;
      }
      this.heard = true;
      this.refusal = undefined;
      this.said = [...snapshot.issues, ...next.issues];
      this.unreadable = snapshot.unreadable;
      if (next.adopted) {
        this.adopt = false;
        this.log.warn('desired.adopted', { lineage: snapshot.lineage });
      }
      if (next.newlyHeld.length > 0) {
        this.log.error('desired.mass-vanish.held', { ids: next.newlyHeld.map((life) => life.id) });
      }
      this.tellIf(next.changed);
      return { kind: 'accepted', revision: next.state.revision, changed: next.changed };
    }, signal);

  readonly settled = (uid: VmUid): Promise<void> =>
    this.one(async () => {
      if (this.stored !== undefined) await this.replace(settledLife(this.stored, uid, this.random.uuid));
    });

  readonly releaseHold = (signal: AbortSignal): Promise<readonly VmId[]> =>
    this.one(async () => {
      const held = this.held();
      if (this.stored !== undefined && held.length > 0) await this.replace(released(this.stored, this.random.uuid));
      return held.map((life) => life.id).toSorted();
    }, signal);

  private async one<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.checkLoaded();
    const release = await this.serial.acquire(signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  private async replace(state: StoredDesired): Promise<void> {
    if (state === this.stored) return;
    await this.write(state);
    this.tellIf(true);
  }

  /** The new state is current only when it is on disk. */
  private async write(state: StoredDesired): Promise<void> {
    try {
      await this.files.write(this.options.path, encodeDesired(state));
    } catch (error) {
      this.writeTrouble = {
        source: this.options.path,
        message: `what is wanted now can’t be written, so what was wanted before still counts: ${errorLine(error)}`,
      };
      throw error;
    }
    this.writeTrouble = undefined;
    this.stored = state;
    this.shown = stateOf(state);
  }

  private tellIf(changed: boolean): void {
    const contact = this.inContact();
    if (!changed && contact === this.toldContact) return;
    this.toldContact = contact;
    for (const listener of [...this.listeners]) {
      try {
        listener();
      } catch (err) {
        // One that fails must not keep the others from knowing.
        this.log.error('desired.listener.failed', { err });
      }
    }
  }

  private held(): readonly StoredLife[] {
    return this.stored?.lives.filter((life) => life.held) ?? [];
  }

  private holdIssue(): DesiredIssue | undefined {
    const held = this.held();
    if (held.length === 0) return undefined;
    const names = held.map((life) => life.id).toSorted();
    const some = names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ');
    return {
      source: 'mass vanishing',
      message: `${some} went missing at once, so all are kept: declare them again, delete them, or let them go with: eitri-agent vm release-holds`,
    };
  }

  private before({ lineage, epoch }: Pick<DesiredSnapshot, 'lineage' | 'epoch'>): StoredDesired | undefined {
    if (this.stored !== undefined || this.inherited.length === 0) return this.stored;
    return { ...emptyDesired(lineage, epoch), lives: [...this.inherited].sort((a, b) => (a.uid < b.uid ? -1 : 1)) };
  }

  private checkLoaded(): void {
    if (!this.loaded) throw bug('the desired store was used before it was loaded');
  }
}

function stateOf({ lineage, epoch, revision, lives }: StoredDesired): DesiredState {
  return { lineage, epoch, revision, lives: lives.map(lifeOf) };
}

function lifeOf(life: StoredLife): DesiredLife {
  const { uid, id, spec } = life;
  switch (life.kind) {
    case 'present':
      return { kind: life.kind, uid, id, spec };
    case 'tombstoned':
      return { kind: life.kind, uid, id, spec, absence: life.absence };
    case 'vanished':
      return { kind: life.kind, uid, id, spec, absence: life.absence, held: life.held };
  }
}
