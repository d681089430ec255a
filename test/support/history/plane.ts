/**
 * A control plane of a history: what it declares, what it says to the agent, and whether it was heard right.
 *
 * It speaks through `accept` alone, whole words, as a real one does: again while it was not accepted, and to each agent
 * anew. After each answer it looks at what the store holds for wanted, life by life, by rules of its own: the word was
 * carried out, nothing else was touched, and a foreign or old word changes nothing (`trouble`).
 */
import { sampleSpec, sampleUid } from '@eitri/conformance';
import type {
  AcceptOutcome,
  DesiredLife,
  DesiredSnapshot,
  DesiredState,
  VmId,
  VmSpec,
  VmUid,
} from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import type { FileWorld } from '../file-world.js';

/** `server` gives uids and counts revisions, `local` leaves both to the agent. */
export type PlaneKind = 'local' | 'server';
export type Staleness = 'lineage' | 'epoch' | 'revision';

interface Declared {
  readonly spec: VmSpec;
  readonly uid: VmUid | undefined;
}

const LINEAGE = 'lineage-of-the-plane';
/** Apart from those that the agent gives. */
const FIRST_UID = 500_000;

export class Plane {
  /** The first thing that was not as its word says. */
  trouble: string | undefined;
  private readonly declared = new Map<string, Declared>();
  private buried: { readonly id: VmId; readonly uid?: VmUid }[] = [];
  private readonly hidden = new Set<string>();
  private readonly absences = new Set<string>();
  private epoch = 3;
  private revision = 1;
  private there = true;
  private heard = false;
  private unsaid = true;
  private speaking: object | undefined;
  private lastUid = FIRST_UID;

  constructor(
    private readonly world: FileWorld,
    private readonly kind: PlaneKind,
  ) {}

  specOf(name: string): VmSpec | undefined {
    return this.declared.get(name)?.spec;
  }

  names(): readonly string[] {
    return [...this.declared.keys()];
  }

  declare(name: string, spec: VmSpec): void {
    const uid = this.declared.get(name)?.uid ?? this.livingUid(name);
    this.declared.set(name, { spec, uid: this.kind === 'server' ? (uid ?? this.newUid()) : undefined });
    this.hidden.delete(name);
    this.buried = this.buried.filter((grave) => grave.id !== name || (grave.uid !== undefined && grave.uid !== uid));
    this.changed();
  }

  /** Deleted on purpose. */
  bury(name: string): void {
    const uid = this.declared.get(name)?.uid ?? this.livingUid(name);
    this.declared.delete(name);
    this.hidden.delete(name);
    this.buried.push({ id: name as VmId, ...(this.kind === 'server' && uid !== undefined ? { uid } : {}) });
    this.changed();
  }

  /** Deleted, and another life of the name declared in the same word. Only a server can say that. */
  bearAgain(name: string): void {
    const { spec } = this.declared.get(name) ?? {};
    if (spec === undefined || this.kind === 'local') return;
    this.bury(name);
    this.declared.set(name, { spec, uid: this.newUid() });
  }

  /** Its declaration is gone, and nobody said that it was deleted. */
  lose(name: string): void {
    this.declared.delete(name);
    this.hidden.delete(name);
    this.changed();
  }

  /** Its declaration can't be read for a while. */
  hide(name: string): void {
    if (this.declared.has(name)) this.hidden.add(name);
    this.changed();
  }

  /** Everything can be read again. */
  unhide(): void {
    this.hidden.clear();
    this.changed();
  }

  raiseEpoch(): void {
    this.epoch++;
    this.changed();
  }

  setThere(there: boolean): void {
    this.there = there;
    this.heard = false;
    if (there) this.connect();
    else this.world.setContact(false);
  }

  /** An agent is up, or the line is. */
  connect(): void {
    this.speaking = undefined;
    this.heard = false;
    this.unsaid = true;
    this.world.setContact(this.there);
    this.speak();
  }

  /** Whether graces may count, by this plane's own account. */
  inContact(): boolean {
    const missed = (this.world.current()?.lives ?? []).filter((life) => life.kind !== 'present');
    return this.there && this.heard && !missed.some(({ id }) => this.hidden.has(id));
  }

  /** Says what it has to say, if it can and has anything. */
  speak(): void {
    if (!this.there || !this.unsaid || this.speaking !== undefined || this.isDeaf) return;
    this.unsaid = false;
    const word = this.word();
    const before = this.world.current();
    const others = this.world.otherChanges;
    this.say(word, (outcome) => {
      const after = this.world.current();
      if (outcome.kind === 'refused') {
        this.wrong(`its own word was refused: ${outcome.why}`);
        return;
      }
      this.heard = this.there;
      if (after === undefined) this.wrong('a word was accepted, and nothing is wanted');
      else this.checkAccepted(word, before, after, others === this.world.otherChanges);
    });
  }

  /** Somebody says what must not be heard: another owner, or this one's past. It would bury everything. */
  speakStale(what: Staleness): void {
    const before = this.world.current();
    if (before === undefined || this.speaking !== undefined || this.isDeaf) return;
    if (what === 'revision' && before.revision === 0) return;
    const others = this.world.otherChanges;
    const word: DesiredSnapshot = {
      lineage: what === 'lineage' ? 'lineage-of-somebody-else' : before.lineage,
      epoch: what === 'epoch' ? before.epoch - 1 : what === 'lineage' ? before.epoch + 1 : before.epoch,
      revision: what === 'revision' ? before.revision - 1 : before.revision + 10,
      vms: [{ spec: sampleSpec('stranger') }],
      tombstones: before.lives.map(({ id, uid }) => ({ id, uid })),
      unreadable: [],
      issues: [],
    };
    this.say(word, (outcome) => {
      this.heard = false;
      this.unsaid = true;
      if (outcome.kind !== 'refused') this.wrong(`a word of a foreign or old ${what} was accepted`);
      const unchanged = stableJson(before) === stableJson(this.world.current());
      if (!unchanged && others === this.world.otherChanges)
        this.wrong(`a refused word of an old ${what} changed what is wanted`);
    });
  }

  /** Gives another life to names whose life was settled under their declaration; answers whether there were any. */
  resync(): boolean {
    let news = false;
    for (const [name, { spec, uid }] of this.declared) {
      const lives = this.world.current()?.lives.filter(({ id }) => id === name) ?? [];
      if (lives.some((life) => life.kind === 'present' && (uid === undefined || life.uid === uid))) continue;
      news = true;
      const dead = uid !== undefined && !lives.some((life) => life.uid === uid);
      if (dead && this.world.settled.has(uid)) this.declared.set(name, { spec, uid: this.newUid() });
      this.changed();
    }
    return news || this.unsaid || this.speaking !== undefined;
  }

  private get isDeaf(): boolean {
    return this.world.agent === undefined || this.world.killed;
  }

  private changed(): void {
    this.revision++;
    this.unsaid = true;
  }

  private newUid(): VmUid {
    return sampleUid(++this.lastUid);
  }

  /** A server takes a life back that it named before, as long as it lives. */
  private livingUid(name: string): VmUid | undefined {
    if (this.kind === 'local') return undefined;
    return this.world.current()?.lives.findLast(({ id, uid }) => id === name && !this.world.settled.has(uid))?.uid;
  }

  private word(): DesiredSnapshot {
    const shown = [...this.declared].filter(([name]) => !this.hidden.has(name));
    return {
      lineage: LINEAGE,
      epoch: this.epoch,
      ...(this.kind === 'server' ? { revision: this.revision } : {}),
      vms: shown.map(([, { spec, uid }]) => (uid === undefined ? { spec } : { spec, uid })),
      tombstones: [...this.buried],
      unreadable: [...this.hidden] as VmId[],
      issues: [],
    };
  }

  private say(word: DesiredSnapshot, heard: (outcome: AcceptOutcome) => void): void {
    const turn = {};
    this.speaking = turn;
    this.world.accept(word).then(
      (outcome) => {
        if (this.speaking !== turn) return;
        this.speaking = undefined;
        heard(outcome);
      },
      () => {
        if (this.speaking !== turn) return;
        this.speaking = undefined;
        this.heard = false;
        this.unsaid = true;
      },
    );
  }

  private checkAccepted(
    word: DesiredSnapshot,
    before: DesiredState | undefined,
    after: DesiredState,
    alone: boolean,
  ): void {
    const old = new Map((before?.lives ?? []).map((life) => [life.uid, life]));
    const now = new Map(after.lives.map((life) => [life.uid, life]));
    if (after.epoch !== word.epoch || after.lineage !== word.lineage) this.wrong('a word is not what is current');
    if (word.revision !== undefined && after.revision !== word.revision) this.wrong('a revision was not taken over');
    const declared = new Set<VmUid>();
    for (const { uid, spec } of word.vms) {
      if (uid !== undefined && this.world.settled.has(uid)) continue;
      const lives = after.lives.filter((life) => life.id === spec.id && life.kind === 'present');
      const named = lives.filter((life) => uid === undefined || life.uid === uid);
      for (const life of named) declared.add(life.uid);
      if (named.length !== 1) this.wrong(`${spec.id} was declared, and lives ${String(named.length)} times`);
      if (stableJson(named[0]?.spec) !== stableJson(spec)) this.wrong(`${spec.id} is not wanted as it was declared`);
      const earlier = before?.lives.filter((life) => life.id === spec.id && !this.world.settled.has(life.uid)) ?? [];
      if (uid === undefined && earlier.length > 0 && !earlier.some((life) => life.uid === named[0]?.uid)) {
        this.wrong(`${spec.id} was given another life while it had one`);
      }
    }
    for (const uid of old.keys()) {
      if (!now.has(uid) && !this.world.settled.has(uid)) this.wrong(`${uid} is not wanted in any way any more`);
    }
    let vanished = 0;
    for (const life of after.lives) {
      if (declared.has(life.uid)) continue;
      const was = old.get(life.uid);
      if (word.unreadable.includes(life.id) && was?.kind !== life.kind)
        this.wrong(`${life.id} can't be read, and is ${life.kind}`);
      if (life.kind === 'present') {
        if (!word.unreadable.includes(life.id) && alone) this.wrong(`${life.id} is not declared, and is present`);
        continue;
      }
      const buried = word.tombstones.some(({ id, uid }) => (uid === undefined ? id === life.id : uid === life.uid));
      if (was?.kind === life.kind) {
        if (buried && life.kind === 'vanished') this.wrong(`${life.id} was deleted, and only vanished`);
        if (was.absence !== life.absence && alone)
          this.wrong(`the absence of ${life.id} has another name, and went on`);
        continue;
      }
      if (this.absences.has(life.absence)) this.wrong(`${life.id} is missing under the name of an earlier absence`);
      if (buried !== (life.kind === 'tombstoned'))
        this.wrong(`${life.id} is ${life.kind}, and buried is ${String(buried)}`);
      if (life.kind === 'vanished') vanished++;
    }
    const present = [...old.values()].filter((life) => life.kind === 'present').length;
    const many = vanished > 1 && vanished > present / 4;
    for (const life of after.lives) {
      const isNew = old.get(life.uid)?.kind === 'present' && life.kind === 'vanished';
      if (isNew && alone && life.held !== many)
        this.wrong(`${life.id} vanished among ${vanished} of ${present}: held is ${String(life.held)}`);
      if (life.kind !== 'present') this.absences.add(life.absence);
    }
  }

  private wrong(sentence: string): void {
    this.trouble ??= sentence;
  }
}

/** The life that a name stands for: the one that is wanted, or else the one that was wanted last. */
export const lifeNamed = (lives: readonly DesiredLife[], name: string): DesiredLife | undefined =>
  lives.find(({ id, kind }) => id === name && kind === 'present') ?? lives.findLast(({ id }) => id === name);
