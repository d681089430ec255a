/**
 * One history as it happens: a world, whoever plays operator and fate in it, and a watcher of what must hold meanwhile.
 *
 * Time moves in slices, and what holds at every moment is looked at between them and at each start of a VMM. Fails at
 * the first thing that is wrong.
 */
import { createHash } from 'node:crypto';
import { sampleSpec } from '@eitri/conformance';
import type { PortMember, VmFaults } from '@eitri/conformance';
import type { DesiredLife, VmSpec, VmUid } from '@eitri/core/contracts';
import { GIB } from '@eitri/core/kit';
import type { EnginePolicy } from '@eitri/core/reconcile';
import { FileWorld } from '../file-world.js';
import { lifeNamed, Plane } from './plane.js';
import { Prng } from './prng.js';
import { NAMES } from './steps.js';
import type { Change, GoingDown, History, Name, Step } from './steps.js';

const SLICE_MS = 2_500;
const HOST_MEMORY_MIB = 4_096;

/** Short, so that a history is: what is tested is the order of things. */
const POLICY: Partial<EnginePolicy> = {
  tombstoneGraceMs: 20_000,
  vanishGraceMs: 40_000,
  vmTimeoutMs: 30_000,
  stuckAfterMs: 5_000,
  createRetryMs: [1_000, 5_000],
  crashFirstMs: 2_000,
  crashMaxMs: 15_000,
  calmAfterMs: 45_000,
  killAfterTerminateMs: 4_000,
  portRetryMs: 5_000,
  persistTimersMs: 5_000,
  stoppingTickMs: 2_500,
  startingTickMs: 2_500,
  maxConcurrentCreates: 2,
  maxConcurrentBoots: 2,
};

interface Booted {
  readonly disk: string;
  readonly inode: number;
}

/** How long a life was missed at most, in contact, for one absence. */
interface Missed {
  readonly absence: string;
  readonly graceMs: number;
  ms: number;
}

export class Scene {
  readonly world: FileWorld;
  private readonly plane: Plane;
  /** What was declared of a name last. */
  private readonly specs = new Map<string, VmSpec>();
  /** Disks that guests have written to. */
  private readonly booted = new Map<VmUid, Booted>();
  private readonly volumes = new Map<string, number>();
  /** What each VMM was started with. */
  private readonly sizes = new Map<VmUid, { readonly vcpus: number; readonly memoryMib: number }>();
  private readonly missed = new Map<VmUid, Missed>();
  private readonly lives = new Set<VmUid>();
  private readonly answersToLose = new Map<PortMember, number>();
  private heardLife = 0;
  private heardSeq = 0;
  private hangsUntilMs = 0;
  private downMs = 0;
  private rebootWhenDown: GoingDown | undefined;
  private broken: string | undefined;

  constructor(private readonly history: History) {
    const { caps, reserveMib } = history;
    this.world = new FileWorld({
      publishes: true,
      policy: {
        ...POLICY,
        maxVcpus: caps.vcpus,
        maxMemoryMib: caps.memoryMib,
        maxDiskGib: caps.diskGib,
        memoryReserveMib: reserveMib,
      },
    });
    this.plane = new Plane(this.world, history.plane);
    this.world.onCall = (call) => {
      if (call.member === 'provisioner.boot' && call.uid !== undefined) this.sawBoot(call.uid, call.phase);
      const left = this.answersToLose.get(call.member) ?? 0;
      if (call.phase !== 'after' || call.outcome !== 'resolved' || left === 0) return;
      this.answersToLose.set(call.member, left - 1);
      throw new Error(`the answer of ${call.member} was lost`);
    };
  }

  /** All that was asked of the ports, and how it ended. */
  trace(): string {
    const hash = createHash('sha256');
    for (const { member, uid, phase, outcome } of this.world.calls.entries) {
      hash.update(`${member} ${uid ?? ''} ${phase} ${outcome ?? ''}\n`);
    }
    hash.update(this.world.files.digest());
    return hash.update(JSON.stringify(this.world.agent?.engine.report())).digest('hex');
  }

  async play(step: Step): Promise<void> {
    this.act(step);
    await this.pass(step.thenMs);
  }

  /** Lets time pass, with an agent, and looks. */
  async pass(ms: number): Promise<void> {
    const { clock } = this.world;
    let left = ms;
    do {
      const slice = Math.min(left, SLICE_MS);
      this.plane.speak();
      await clock.advance(0);
      const missed = this.missedNow();
      await clock.advance(slice);
      left -= slice;
      for (const one of missed) one.ms += slice;
      this.check();
      if (this.world.killed) await this.revive();
    } while (left > 0);
  }

  /** The first agent, or the next one, as its service manager starts it: again until it is up. */
  async start(): Promise<void> {
    for (let tries = 0; tries < 20; tries++) {
      let up: boolean | undefined;
      this.world.boot().then(
        () => (up = true),
        () => (up = false),
      );
      for (let waited = 0; up === undefined && !this.world.killed && waited < 60_000; waited += 1_000) {
        await this.world.clock.advance(waited === 0 ? 0 : 1_000);
      }
      if (up === true && !this.world.killed) {
        this.plane.connect();
        return;
      }
      await this.world.kill();
      await this.world.clock.advance(1_000);
    }
    throw new Error('no agent comes up');
  }

  /** Every fault is over, the control plane is there, and says again what it wants. */
  heal(): void {
    const { world } = this;
    world.calls.heal();
    world.files.heal();
    this.answersToLose.clear();
    world.images.missing.clear();
    world.host.network.stuckTaps.clear();
    this.plane.unhide();
    this.plane.setThere(true);
    for (const uid of this.lives) Object.assign(world.host.faultsOf(uid), world.host.defaultFaults);
  }

  /** Faults are over for good: no death is left to come either. */
  async calm(): Promise<void> {
    this.heal();
    this.world.killAt(() => false);
    if (this.world.killed) await this.revive();
    this.rebootWhenDown = undefined;
    this.downMs = 0;
    // VMMs that are bound to die soon do.
    await this.pass(5_000);
    // What could not be read when it started is read by another agent: an operator's next step.
    if (this.world.agent?.engine.report().vms.some(({ reason }) => reason === 'RecordUnreadable') === true) {
      await this.restart();
    }
  }

  /** The agent ends, and another one starts. */
  async restart(): Promise<void> {
    this.world.killNow();
    await this.revive();
  }

  /** Says again what is declared, where that was not carried out; answers whether there was anything. */
  resync(): boolean {
    return this.plane.resync();
  }

  /** The control plane declares a VM, or changes it; said at the next chance. */
  declare(name: string, spec: VmSpec): void {
    this.specs.set(name, spec);
    this.plane.declare(name, spec);
  }

  /** Another label: what failed is tried again. */
  touch(name: Name): void {
    const spec = this.plane.specOf(name);
    if (spec === undefined) return;
    const labels = { tried: String(Number(spec.labels['tried'] ?? 0) + 1) };
    this.declare(name, { ...spec, labels });
  }

  lifeOf(name: Name): VmUid | undefined {
    return lifeNamed(this.world.current()?.lives ?? [], name)?.uid;
  }

  /** Whether some call of this scene's agents may still be waited for. */
  get hangs(): boolean {
    return this.world.clock.monotonicMs() <= this.hangsUntilMs;
  }

  everyLife(): readonly VmUid[] {
    return [...this.lives];
  }

  private act(step: Step): void {
    const { world } = this;
    switch (step.do) {
      case 'declare': {
        const before = this.plane.specOf(step.vm) ?? sampleSpec(step.vm, { shutdown: { graceSeconds: 12 } });
        this.declare(step.vm, changed(before, step.change, step.vm));
        return;
      }
      case 'tombstone':
        if (this.lifeOf(step.vm) !== undefined) this.plane.bury(step.vm);
        return;
      case 'vanish':
        this.plane.lose(step.vm);
        return;
      case 'vanishAll':
        for (const name of this.plane.names()) this.plane.lose(name);
        return;
      case 'takeBack': {
        const spec = this.specs.get(step.vm);
        if (spec !== undefined) this.declare(step.vm, spec);
        return;
      }
      case 'bearAgain':
        this.plane.bearAgain(step.vm);
        return;
      case 'hide':
        this.plane.hide(step.vm);
        return;
      case 'release':
        if (world.agent !== undefined && !world.killed) world.releaseHold().catch(() => undefined);
        return;
      case 'stale':
        this.plane.speakStale(step.what);
        return;
      case 'raiseEpoch':
        this.plane.raiseEpoch();
        return;
      case 'diskFull':
        world.files.full = step.full;
        return;
      case 'diskFails':
        world.files.fail('EIO', step.after, step.times);
        return;
      case 'exit': {
        const uid = this.lifeOf(step.vm);
        if (uid !== undefined) world.host.crash(uid, step.code);
        return;
      }
      case 'faults': {
        const uid = this.lifeOf(step.vm);
        if (uid !== undefined) Object.assign(world.host.faultsOf(uid), step.faults satisfies Partial<VmFaults>);
        return;
      }
      case 'fail':
        world.calls.fail(step.member, new Error(`${step.member}: no space left on device`), step.times);
        return;
      case 'loseAnswer':
        this.answersToLose.set(step.member, step.times);
        return;
      case 'hang':
        this.hang(step.member);
        return;
      case 'kill': {
        let count = 0;
        this.downMs = step.downMs;
        this.rebootWhenDown = step.reboot;
        world.killAt(() => count++ === step.at);
        return;
      }
      case 'reboot':
        this.downMs = 0;
        this.rebootWhenDown = step.down;
        world.killNow();
        return;
      case 'jump':
        world.clock.jump(step.ms);
        return;
      case 'contact':
        this.plane.setThere(step.there);
        return;
      case 'noImages':
        world.images.missing.add('tiny');
        return;
      case 'stuckTap': {
        const uid = this.lifeOf(step.vm);
        if (uid !== undefined) world.host.network.stuckTaps.add(uid);
        return;
      }
      case 'heal':
        this.heal();
    }
  }

  private hang(member: PortMember): void {
    const { world } = this;
    const hungMs = world.policy.vmTimeoutMs + world.policy.stuckAfterMs + 1_000;
    world.calls.on(
      member,
      async () => {
        const { life } = world;
        this.hangsUntilMs = Math.max(this.hangsUntilMs, world.clock.monotonicMs() + hungMs);
        await world.clock.sleep(hungMs, new AbortController().signal);
        // Nobody is there any more to go on.
        if (life !== world.life) await new Promise<never>(() => undefined);
        throw new Error(`${member} was not answered in time`);
      },
      1,
    );
  }

  private async revive(): Promise<void> {
    await this.world.kill();
    const down = this.rebootWhenDown;
    if (down !== undefined) this.world.reboot(down.by === 'powerCut' ? new Prng(down.cut) : undefined);
    this.rebootWhenDown = undefined;
    await this.world.clock.advance(this.downMs);
    this.downMs = 0;
    this.check();
    await this.start();
  }

  private missedNow(): readonly Missed[] {
    const { world } = this;
    if (world.agent === undefined || world.killed) return [];
    const inContact = this.plane.inContact();
    return (world.current()?.lives ?? []).flatMap((life) => {
      // From there on there is no way back.
      if (world.record(life.uid)?.destroying === true) return [];
      const missed = this.missedAs(life);
      return missed !== undefined && inContact ? [missed] : [];
    });
  }

  private missedAs(life: DesiredLife): Missed | undefined {
    const { policy } = this.world;
    if (life.kind === 'present') {
      this.missed.delete(life.uid);
      return undefined;
    }
    const before = this.missed.get(life.uid);
    if (before?.absence === life.absence) return before;
    const held = life.kind === 'vanished' && life.held;
    const graceMs = life.kind === 'tombstoned' ? policy.tombstoneGraceMs : policy.vanishGraceMs;
    const missed = { absence: life.absence, graceMs: held ? Number.POSITIVE_INFINITY : graceMs, ms: 0 };
    this.missed.set(life.uid, missed);
    return missed;
  }

  private sawBoot(uid: VmUid, phase: 'before' | 'after'): void {
    const { world } = this;
    if (phase === 'before') {
      const spec = world.record(uid)?.spec;
      if (spec !== undefined && world.host.vmm(uid) === undefined) {
        this.sizes.set(uid, { vcpus: spec.cpus, memoryMib: spec.memoryMib });
      }
      return;
    }
    try {
      this.checkCaps();
    } catch (error) {
      // Thrown here it would be the backend's answer.
      this.broken ??= (error as Error).message;
    }
  }

  private check(): void {
    const { world } = this;
    if (this.broken !== undefined) throw new Error(this.broken);
    const [violation] = world.host.violations;
    if (violation !== undefined) throw new Error(violation);
    if (this.plane.trouble !== undefined) throw new Error(this.plane.trouble);
    for (const { uid } of world.current()?.lives ?? []) this.lives.add(uid);
    if (!world.killed) this.checkReport();
    this.checkEvents();
    this.checkStrangers();
    this.checkCaps();
    this.checkDisks();
  }

  /** Every life that is wanted, or that has a record, has its line. */
  private checkReport(): void {
    const { world } = this;
    if (world.agent === undefined) return;
    const { vms } = world.agent.engine.report();
    const reported = new Set<string>(vms.map(({ uid }) => uid));
    for (const { id, phase, reason, message } of vms) {
      const explains = phase === 'Failed' || phase === 'Unknown' || reason === 'Capacity';
      if (explains && (reason === undefined || message === undefined))
        throw new Error(`${id} is ${phase}, and nobody knows why`);
    }
    for (const { uid, id } of world.current()?.lives ?? []) {
      if (!reported.has(uid)) throw new Error(`${id} (${uid}) is wanted, and not in the report`);
    }
    for (const uid of world.recorded()) {
      if (world.record(uid) !== undefined && !reported.has(uid))
        throw new Error(`${uid} has a record, and is not in the report`);
    }
  }

  /** Who reads an event learns what happened, and to whom. */
  private checkEvents(): void {
    const { agent, life } = this.world;
    if (agent === undefined) return;
    if (this.heardLife !== life) this.heardSeq = 0;
    this.heardLife = life;
    for (const event of agent.events.since(this.heardSeq)) {
      this.heardSeq = event.seq;
      const said: readonly unknown[] = [event.uid, event.type, event.message];
      if (said.includes(undefined)) {
        throw new Error(`an event says too little: ${JSON.stringify(event)}`);
      }
    }
  }

  /** Nothing is done for a life that no accepted word ever named. */
  private checkStrangers(): void {
    const { host } = this.world;
    const acted = [
      ...this.world.recorded(),
      ...host.vmms().map(({ uid }) => uid),
      ...host.network.reserved().map(({ uid }) => uid),
    ];
    const stranger = acted.find((uid) => !this.lives.has(uid));
    if (stranger !== undefined) throw new Error(`something was made for ${stranger}, which nobody wants`);
  }

  private checkCaps(): void {
    const { caps, reserveMib } = this.history;
    const { host } = this.world;
    const sum = { vcpus: 0, memoryMib: 0, diskGib: 0 };
    for (const { uid } of host.vmms()) {
      sum.vcpus += this.sizes.get(uid)?.vcpus ?? 0;
      sum.memoryMib += this.sizes.get(uid)?.memoryMib ?? 0;
    }
    for (const uid of this.world.recorded()) {
      const record = this.world.record(uid);
      if (record === undefined) continue;
      sum.diskGib += (host.files.get(record.paths.rootDisk)?.sizeBytes ?? 0) / GIB;
      for (const path of record.volumePaths) sum.diskGib += (host.files.get(path)?.sizeBytes ?? 0) / GIB;
    }
    const most = { ...caps };
    if (reserveMib > 0) {
      const left = HOST_MEMORY_MIB - reserveMib;
      most.memoryMib = most.memoryMib === 0 ? left : Math.min(left, most.memoryMib);
    }
    for (const field of ['vcpus', 'memoryMib', 'diskGib'] as const) {
      if (most[field] > 0 && sum[field] > most[field]) {
        throw new Error(`${String(sum[field])} ${field} are taken of ${String(most[field])}`);
      }
    }
  }

  private checkDisks(): void {
    const { host } = this.world;
    for (const [uid, { disk, inode }] of this.booted) {
      const now = host.files.get(disk)?.inode;
      if (now === inode) continue;
      if (now !== undefined) throw new Error(`the disk of ${uid} was made anew`);
      this.booted.delete(uid);
      const { ms = 0, graceMs = Number.POSITIVE_INFINITY } = this.missed.get(uid) ?? {};
      // An absence that begins within a slice is seen at the end of it.
      if (ms + SLICE_MS < graceMs)
        throw new Error(`the disk of ${uid} is gone after ${ms} ms of ${graceMs} ms of grace`);
    }
    for (const uid of this.lives) {
      const disk = this.world.pathsOf(uid).rootDisk;
      const file = host.files.get(disk);
      if (host.starts(uid) > 0 && file !== undefined) this.booted.set(uid, { disk, inode: file.inode });
    }
    for (const [path, inode] of this.volumes) {
      if (host.files.get(path)?.inode !== inode) throw new Error(`volume ${path} was lost or made anew`);
    }
    for (const path of host.list('/state/volumes')) {
      const file = host.files.get(path);
      if (file !== undefined) this.volumes.set(path, file.inode);
    }
  }
}

function changed(spec: VmSpec, change: Change, name: Name): VmSpec {
  const { volumes, ports, image, ...plain } = change;
  const base = NAMES.indexOf(name) * 10;
  return {
    ...spec,
    ...plain,
    ...(image === undefined ? {} : { image: { kind: 'catalog', name: image } }),
    ...(volumes === undefined
      ? {}
      : { volumes: Array.from({ length: volumes }, (_, at) => ({ name: `${name}-${String(at)}`, sizeGib: 1 })) }),
    ...(ports === undefined
      ? {}
      : {
          exposures: Array.from({ length: ports }, (_, at) => ({
            hostAddress: '127.0.0.1',
            hostPort: 8_000 + base + at,
            guestPort: 80 + at,
            protocol: 'tcp' as const,
          })),
        }),
  };
}
