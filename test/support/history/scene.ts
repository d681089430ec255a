/**
 * One history as it happens: a world, whoever plays operator and fate in it, and a watcher of what must hold meanwhile.
 *
 * Time moves in slices, and what holds at every moment is looked at between them and at each start of a VMM. Fails at
 * the first thing that is wrong.
 */
import { createHash } from 'node:crypto';
import { sampleSpec } from '@eitri/conformance';
import type { PortMember, VmFaults } from '@eitri/conformance';
import type { VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { GIB } from '@eitri/core/kit';
import type { EnginePolicy } from '@eitri/core/reconcile';
import { World } from '../world.js';
import { NAMES } from './steps.js';
import type { Change, History, Name, Step } from './steps.js';

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

export class Scene {
  readonly world: World;
  /** What the control plane's folder holds. */
  private readonly declared = new Map<Name, VmSpec>();
  /** Disks that guests have written to. */
  private readonly booted = new Map<VmUid, Booted>();
  private readonly volumes = new Map<string, number>();
  /** What each VMM was started with. */
  private readonly sizes = new Map<VmUid, { readonly vcpus: number; readonly memoryMib: number }>();
  /** At most so long each life was missed in contact. */
  private readonly missedMs = new Map<VmUid, number>();
  private readonly lives = new Set<VmUid>();
  private readonly answersToLose = new Map<PortMember, number>();
  private hangsUntilMs = 0;
  private downMs = 0;
  private rebootWhenDown = false;
  private broken: string | undefined;

  constructor(private readonly history: History) {
    const { caps, reserveMib } = history;
    this.world = new World({
      publishes: true,
      policy: {
        ...POLICY,
        maxVcpus: caps.vcpus,
        maxMemoryMib: caps.memoryMib,
        maxDiskGib: caps.diskGib,
        memoryReserveMib: reserveMib,
      },
    });
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
    return hash.update(JSON.stringify(this.world.agent?.engine.report())).digest('hex');
  }

  async play(step: Step): Promise<void> {
    this.act(step);
    await this.pass(step.thenMs);
  }

  /** Lets time pass, with an agent, and looks. */
  async pass(ms: number): Promise<void> {
    let left = ms;
    do {
      const slice = Math.min(left, SLICE_MS);
      const missed = this.missedNow();
      await this.world.clock.advance(slice);
      left -= slice;
      for (const uid of missed) this.missedMs.set(uid, (this.missedMs.get(uid) ?? 0) + slice);
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
      if (up === true && !this.world.killed) return;
      await this.world.kill();
      await this.world.clock.advance(1_000);
    }
    throw new Error('no agent comes up');
  }

  /** Every fault is over, the control plane is there, and says again what it wants. */
  heal(): void {
    const { world } = this;
    world.calls.heal();
    this.answersToLose.clear();
    world.images.missing.clear();
    world.host.network.stuckTaps.clear();
    world.desired.setContact(true);
    for (const uid of this.lives) Object.assign(world.host.faultsOf(uid), world.host.defaultFaults);
  }

  /** Faults are over for good: no death is left to come either. */
  async calm(): Promise<void> {
    this.heal();
    this.world.killAt(() => false);
    if (this.world.killed) await this.revive();
    // VMMs that are bound to die soon do.
    await this.pass(5_000);
  }

  /** Says again what is declared, as a full snapshot does; answers whether that was news. */
  resync(): boolean {
    let news = false;
    for (const [name, spec] of this.declared) {
      if (this.lifeOf(name) !== undefined) continue;
      this.lives.add(this.world.desired.want(spec));
      news = true;
    }
    return news;
  }

  /** Another label: what failed is tried again. */
  touch(name: Name): void {
    const spec = this.declared.get(name);
    if (spec === undefined) return;
    const labels = { tried: String(Number(spec.labels['tried'] ?? 0) + 1) };
    this.declare(name, { ...spec, labels });
  }

  lifeOf(name: Name): VmUid | undefined {
    return this.world.desired.current()?.lives.find((life) => life.id === name)?.uid;
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
        const before = this.declared.get(step.vm) ?? sampleSpec(step.vm, { shutdown: { graceSeconds: 12 } });
        this.declare(step.vm, changed(before, step.change, step.vm));
        return;
      }
      case 'tombstone':
      case 'vanish':
      case 'hold': {
        this.declared.delete(step.vm);
        const uid = this.lifeOf(step.vm);
        if (uid === undefined) return;
        if (step.do === 'tombstone') world.desired.tombstone(uid);
        else world.desired.vanish(uid, step.do === 'hold');
        return;
      }
      case 'takeBack': {
        const life = world.desired.current()?.lives.find(({ id }) => id === (step.vm as string as VmId));
        if (life === undefined) return;
        this.declared.set(step.vm, life.spec);
        world.desired.restore(life.uid);
        return;
      }
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
        this.rebootWhenDown = true;
        world.killNow();
        return;
      case 'jump':
        world.clock.jump(step.ms);
        return;
      case 'contact':
        world.desired.setContact(step.there);
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
        this.resync();
    }
  }

  private declare(name: Name, spec: VmSpec): void {
    this.declared.set(name, spec);
    this.lives.add(this.world.desired.want(spec));
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
    if (this.rebootWhenDown) this.world.host.reboot();
    this.rebootWhenDown = false;
    await this.world.clock.advance(this.downMs);
    this.downMs = 0;
    this.check();
    await this.start();
  }

  private missedNow(): readonly VmUid[] {
    const { desired } = this.world;
    const lives = desired.current()?.lives ?? [];
    if (this.world.agent !== undefined) {
      for (const { uid, kind } of lives) {
        // From there on there is no way back.
        if (kind === 'present' && this.world.state.record(uid)?.destroying !== true) this.missedMs.set(uid, 0);
      }
    }
    if (!desired.inContact()) return [];
    return lives.filter((life) => life.kind !== 'present').map(({ uid }) => uid);
  }

  private sawBoot(uid: VmUid, phase: 'before' | 'after'): void {
    const { world } = this;
    if (phase === 'before') {
      const spec = world.state.record(uid)?.spec;
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
    this.checkCaps();
    this.checkDisks();
  }

  private checkCaps(): void {
    const { caps, reserveMib } = this.history;
    const { host } = this.world;
    const sum = { vcpus: 0, memoryMib: 0, diskGib: 0 };
    for (const { uid } of host.vmms()) {
      sum.vcpus += this.sizes.get(uid)?.vcpus ?? 0;
      sum.memoryMib += this.sizes.get(uid)?.memoryMib ?? 0;
    }
    for (const record of this.world.state.all()) {
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
    const { host, state, policy } = this.world;
    for (const [uid, { disk, inode }] of this.booted) {
      const now = host.files.get(disk)?.inode;
      if (now === inode) continue;
      if (now !== undefined) throw new Error(`the disk of ${uid} was made anew`);
      this.booted.delete(uid);
      const missed = this.missedMs.get(uid) ?? 0;
      if (missed < policy.tombstoneGraceMs) throw new Error(`the disk of ${uid} is gone after ${missed} ms of grace`);
    }
    for (const uid of this.lives) {
      const disk = state.pathsOf(uid).rootDisk;
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
