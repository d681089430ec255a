/**
 * From one accepted desired state to the next: the fence, the uids, tombstones, absence and its brake. Pure.
 *
 * One life's ways:
 *   declared                → present     (the same life, as long as it is not settled)
 *   deleted on purpose      → tombstoned  (stays so when the tombstone itself is gone: only being declared takes it back)
 *   missing                 → vanished    (held, when too many go missing at once)
 *   declared but unreadable → as it was
 *   settled                 → no entry; declared meanwhile: another life
 * Each time that it goes missing, or is missed in another way, its absence gets another name: graces are counted by it.
 * Nothing else moves a life; what an operator or the engine says comes through `released` and `settledLife`.
 */
import type { DeclaredVm, DesiredIssue, DesiredSnapshot, VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { bug, isVmUid, stableJson } from '@eitri/core/kit';
import { emptyDesired, type StoredDesired, type StoredLife } from './desired-file.js';

/** Of the VMs present, this part may vanish at once before somebody has to say that it is meant. */
export const MASS_VANISH_FRACTION = 1 / 4;
/** A server that names uids this old again has lost its own history. */
export const MAX_SETTLED = 10_000;

export interface TransitionOptions {
  /** Whether another lineage may take over what stands. */
  readonly adopt: boolean;
  readonly uuid: () => string;
}

export type Transition =
  | { readonly kind: 'refused'; readonly why: string }
  | {
      readonly kind: 'next';
      readonly state: StoredDesired;
      /** Whether the state differs at all from the one before: only then is there anything to write. */
      readonly touched: boolean;
      /** Whether what is wanted differs: lives, or whose word it is. */
      readonly changed: boolean;
      readonly adopted: boolean;
      /** Lives that this snapshot let vanish and the brake holds. */
      readonly newlyHeld: readonly StoredLife[];
      readonly issues: readonly DesiredIssue[];
    };

export function nextDesired(
  previous: StoredDesired | undefined,
  snapshot: DesiredSnapshot,
  options: TransitionOptions,
): Transition {
  const why = fence(previous, snapshot, options.adopt) ?? contradiction(snapshot);
  if (why !== undefined) return { kind: 'refused', why };

  const before = previous ?? emptyDesired(snapshot.lineage, snapshot.epoch);
  const claims = claim(before, snapshot.vms, options.uuid);
  const rest = before.lives.filter((life) => !claims.lives.has(life.uid) && !claims.untouched.has(life.uid));
  const fateOf = absence(snapshot);
  const vanishing = new Set(rest.filter((life) => fateOf(life) === 'vanishes'));
  // A life that was declared and never made counts too: what exists is in the records, which the store never sees, and a
  // brake that holds too much costs one word of the operator's.
  const present = before.lives.filter((life) => life.kind === 'present').length;
  const held = vanishing.size > 1 && vanishing.size > present * MASS_VANISH_FRACTION;
  const left = rest.map((life): StoredLife => {
    switch (fateOf(life)) {
      case 'tombstoned':
        return { ...life, kind: 'tombstoned', held: false, absence: options.uuid() };
      case 'vanishes':
        return { ...life, kind: 'vanished', held, absence: options.uuid() };
      case 'stays':
        return life;
    }
  });
  const untouched = before.lives.filter((life) => claims.untouched.has(life.uid));
  const lives = sorted([...claims.lives.values(), ...left, ...untouched]);

  const adopted = previous !== undefined && previous.lineage !== snapshot.lineage;
  const changed =
    previous === undefined ||
    adopted ||
    previous.epoch !== snapshot.epoch ||
    stableJson(previous.lives) !== stableJson(lives);
  const counted = (adopted ? 0 : before.revision) + (changed ? 1 : 0);
  const revision = snapshot.revision ?? counted;
  const state: StoredDesired = { ...before, lineage: snapshot.lineage, epoch: snapshot.epoch, revision, lives };
  return {
    kind: 'next',
    state,
    touched: changed || revision !== before.revision,
    changed,
    adopted,
    newlyHeld: held ? [...vanishing] : [],
    issues: claims.issues,
  };
}

/** What would be wanted if these were declared beside all that stands; who is missing is no matter here. */
export function declaredBeside(
  previous: StoredDesired,
  specs: readonly VmSpec[],
  uuid: () => string,
): readonly StoredLife[] {
  const vms = specs.map((spec) => ({ spec }));
  const { lives } = claim(previous, vms, uuid);
  return sorted([...previous.lives.filter((life) => !lives.has(life.uid)), ...lives.values()]);
}

/** A destroyed life's entry goes. Declared meanwhile under a uid of ours, its name lives again at once, as another. */
export function settledLife(state: StoredDesired, uid: VmUid, uuid: () => string): StoredDesired {
  const life = state.lives.find((candidate) => candidate.uid === uid);
  if (life === undefined) return state;
  const others = state.lives.filter((candidate) => candidate !== life);
  const isTaken = (taken: VmUid): boolean =>
    state.settled.includes(taken) || state.lives.some((one) => one.uid === taken);
  if (life.given) return { ...state, lives: others, settled: [...state.settled, uid].slice(-MAX_SETTLED) };
  if (life.kind !== 'present') return { ...state, lives: others };
  return { ...state, lives: sorted([...others, { ...life, uid: newUid(uuid, isTaken) }]) };
}

/** The operator's word that what vanished at once was meant to: from now on it has its grace, as if it vanished now. */
export const released = (state: StoredDesired, uuid: () => string): StoredDesired => ({
  ...state,
  lives: state.lives.map((life) => (life.held ? { ...life, held: false, absence: uuid() } : life)),
});

/** Whose word it is, and how old. */
export type WordOrder = Pick<DesiredSnapshot, 'lineage' | 'epoch' | 'revision'>;

/** Why this word is not to be heard, if it is not. */
export function fence(previous: StoredDesired | undefined, snapshot: WordOrder, adopt: boolean): string | undefined {
  if (previous === undefined) return undefined;
  if (previous.lineage !== snapshot.lineage) {
    if (adopt) return undefined;
    return `this host’s VMs belong to lineage ${previous.lineage}, not to ${snapshot.lineage}: start the agent with --adopt to hand them over`;
  }
  if (snapshot.epoch < previous.epoch) {
    return `epoch ${snapshot.epoch} is behind epoch ${previous.epoch}, which was accepted already: this is an older copy`;
  }
  const { revision } = snapshot;
  if (revision !== undefined && snapshot.epoch === previous.epoch && revision < previous.revision) {
    return `revision ${revision} is behind revision ${previous.revision}, which was accepted already`;
  }
  return undefined;
}

/** A word that names one VM twice says nothing about it, and so nothing can be said about who is missing. */
function contradiction(snapshot: DesiredSnapshot): string | undefined {
  const ids = new Set<string>();
  const uids = new Set<string>();
  for (const { uid, spec } of snapshot.vms) {
    if (ids.has(spec.id)) return `${spec.id} is declared twice`;
    if (uid !== undefined && uids.has(uid)) return `uid ${uid} is declared twice`;
    ids.add(spec.id);
    if (uid !== undefined) uids.add(uid);
  }
  return undefined;
}

interface Claims {
  /** What is present now, by uid. */
  readonly lives: ReadonlyMap<VmUid, StoredLife>;
  /** Lives that were named in a way that can't be: they stay as they were. */
  readonly untouched: ReadonlySet<VmUid>;
  readonly issues: readonly DesiredIssue[];
}

function claim(before: StoredDesired, vms: readonly DeclaredVm[], uuid: () => string): Claims {
  const lives = new Map<VmUid, StoredLife>();
  const untouched = new Set<VmUid>();
  const issues: DesiredIssue[] = [];
  const byUid = new Map(before.lives.map((life) => [life.uid, life]));
  const settled = new Set(before.settled);
  const latest = latestLives(before);
  for (const { uid, spec } of vms) {
    const refuse = (message: string): void => {
      issues.push({ source: 'control plane', id: spec.id, message });
    };
    if (uid === undefined) {
      const old = latest.get(spec.id);
      const name = old?.uid ?? newUid(uuid, (taken) => byUid.has(taken) || lives.has(taken) || settled.has(taken));
      lives.set(name, declared(old, { uid: name, id: spec.id, spec, given: false }));
      continue;
    }
    const old = byUid.get(uid);
    if (old !== undefined && old.id !== spec.id) {
      untouched.add(uid);
      refuse(`uid ${uid} is ${old.id} for all its life: give ${spec.id} another uid`);
    } else if (settled.has(uid)) {
      refuse(`uid ${uid} was destroyed here: give ${spec.id} another uid`);
    } else {
      lives.set(uid, declared(old, { uid, id: spec.id, spec, given: true }));
    }
  }
  return { lives, untouched, issues };
}

/** The life as it is wanted now. What a newer agent wrote beside it stays; that it was missing does not. */
function declared(
  old: StoredLife | undefined,
  life: Pick<StoredLife, 'uid' | 'id' | 'spec' | 'given'>,
): StoredLife & { readonly kind: 'present' } {
  const { absence: _over, ...kept } = { absence: undefined, ...old };
  return { ...kept, ...life, kind: 'present', held: false };
}

const PREFERENCE = ['tombstoned', 'vanished', 'present'] as const;

/** The life that a name without a uid means: more than one can be left of it after another lineage was adopted. */
const latestLives = (state: StoredDesired): ReadonlyMap<VmId, StoredLife> =>
  new Map(
    PREFERENCE.flatMap((kind) => state.lives.filter((life) => life.kind === kind)).map((life) => [life.id, life]),
  );

/** What becomes of lives that the snapshot does not declare. */
function absence(snapshot: DesiredSnapshot): (life: StoredLife) => 'tombstoned' | 'vanishes' | 'stays' {
  const buriedUids = new Set(snapshot.tombstones.map(({ uid }) => uid));
  const buriedIds = new Set(snapshot.tombstones.filter(({ uid }) => uid === undefined).map(({ id }) => id));
  const unreadable = new Set(snapshot.unreadable);
  return (life) => {
    if (life.kind === 'tombstoned') return 'stays';
    if (buriedIds.has(life.id) || buriedUids.has(life.uid)) return 'tombstoned';
    return life.kind === 'vanished' || unreadable.has(life.id) ? 'stays' : 'vanishes';
  };
}

function newUid(uuid: () => string, isTaken: (uid: VmUid) => boolean): VmUid {
  const uid = uuid().toLowerCase();
  if (!isVmUid(uid)) throw bug(`the source of randomness gave ${uid} for a UUID`);
  if (isTaken(uid)) throw bug(`the source of randomness gave the UUID ${uid} twice`);
  return uid;
}

const sorted = (lives: readonly StoredLife[]): readonly StoredLife[] =>
  lives.toSorted((a, b) => (a.uid < b.uid ? -1 : 1));
