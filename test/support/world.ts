/**
 * A host in memory on which agents live and die: the real engine over fakes of its ports, moved by a clock that stands
 * still. What a real host keeps over a SIGKILL of the agent, the world keeps: VMMs, files, records, desired state.
 *
 * `World` keeps records and desired state in memory, for tests of the engine alone, which set them at will. On `FileWorld`
 * (file-world.ts) stand the agent's own stores.
 */
import {
  CallLog,
  FakeHost,
  FakeProvisioner,
  FakePumpHooks,
  ManualClock,
  MemoryDesiredStore,
  MemoryDisks,
  MemoryImages,
  MemorySeeds,
  MemoryStateStore,
  never,
  sampleSpec,
} from '@eitri/conformance';
import type { CallHook, PortCall } from '@eitri/conformance';
import type {
  Capabilities,
  DesiredStore,
  HostFacts,
  Platform,
  PortPublisher,
  StateStore,
  VmRecord,
  VmSpec,
  VmStatus,
  VmUid,
} from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import { DEFAULT_POLICY, EventLog, ReconcileEngine } from '@eitri/core/reconcile';
import type { EnginePolicy } from '@eitri/core/reconcile';
import { MemoryPublisher } from './memory-publisher.js';
import { silent } from './quiet.js';
import type { FileCall } from './sim-files.js';

export interface WorldOptions {
  readonly policy?: Partial<EnginePolicy>;
  readonly capabilities?: Partial<Capabilities>;
  readonly publisher?: PortPublisher;
  /** Each agent has a `MemoryPublisher`, whose calls are among the world's. */
  readonly publishes?: boolean;
}

export interface Agent {
  readonly engine: ReconcileEngine;
  readonly events: EventLog;
  readonly pumps: FakePumpHooks;
  readonly provisioner: FakeProvisioner;
  readonly publisher: PortPublisher | undefined;
}

/** Where an agent may die. */
export type WorldCall = PortCall | FileCall;

export interface Stores {
  readonly state: StateStore;
  readonly desired: DesiredStore;
}

export abstract class AnyWorld {
  readonly clock = new ManualClock();
  readonly calls = new CallLog();
  readonly host = new FakeHost({ clock: this.clock, calls: this.calls });
  readonly images = new MemoryImages({ host: this.host, calls: this.calls });
  readonly disks = new MemoryDisks({ host: this.host, calls: this.calls });
  readonly seeds = new MemorySeeds({ host: this.host, calls: this.calls });
  policy: EnginePolicy;
  agent: Agent | undefined;
  /** Told before and after each call of a living agent; may throw, wait, or never come back. */
  onCall: CallHook | undefined;
  /** Counts agents: what belongs to an earlier one must not happen any more. */
  life = 0;
  private dead = false;
  private dieAt: ((call: WorldCall) => boolean) | undefined;

  constructor(private readonly options: WorldOptions = {}) {
    this.policy = { ...DEFAULT_POLICY, ...options.policy };
    this.calls.onCall = (call) => (this.diesAt(call) ? never() : this.onCall?.(call));
  }

  /** What an agent that starts finds on its disk. */
  protected abstract openStores(): Promise<Stores>;

  protected diesAt(call: WorldCall): boolean {
    if (!this.dead && this.dieAt?.(call) === true) this.killNow();
    return this.dead;
  }

  /** Starts an agent, as its service manager would: guests found running get their pumps. */
  async boot(): Promise<Agent> {
    this.life++;
    const { state, desired } = await this.openStores();
    const events = new EventLog(this.clock);
    const pumps = new FakePumpHooks({ calls: this.calls });
    const { host, disks, calls } = this;
    const publisher =
      this.options.publisher ?? (this.options.publishes === true ? new MemoryPublisher(calls) : undefined);
    const provisioner = new FakeProvisioner({
      host,
      pumpHooks: pumps,
      disks,
      calls,
      capabilities: { publishesPorts: publisher !== undefined, ...this.options.capabilities },
    });
    const signal = new AbortController().signal;
    const capabilities = await provisioner.capabilities(signal);
    const platform: Platform = {
      backend: 'fake',
      capabilities,
      provisioner,
      console: { open: never },
      publisher,
      guestCidr: () => Promise.resolve(undefined),
      hostNetworks: [],
    };
    const facts: HostFacts = {
      os: 'linux',
      arch: 'x64',
      bootId: host.bootId,
      hostname: 'test',
      root: true,
      cpus: 2,
      memoryMib: 4096,
    };
    const { images, seeds, clock, policy } = this;
    const engine = new ReconcileEngine(
      ...([platform, state, desired, images, disks, seeds, clock, facts, events, silent, policy] as const),
    );
    this.agent = { engine, events, pumps, provisioner, publisher };
    await engine.start(signal);
    return this.agent;
  }

  /** The agent dies at the first call, or end of a call, that fits. */
  killAt(fits: (call: WorldCall) => boolean): void {
    this.dieAt = fits;
  }

  /** The agent is dead from now on: `kill` clears it away. */
  killNow(): void {
    this.dead = true;
    this.dieAt = undefined;
  }

  get killed(): boolean {
    return this.dead;
  }

  /** SIGKILL: nothing that the agent was about to do happens. */
  async kill(): Promise<void> {
    this.dead = true;
    this.dieAt = undefined;
    const { agent } = this;
    this.agent = undefined;
    const over = agent?.engine.quiesce(0);
    await this.clock.advance(0);
    await over;
    this.dead = false;
  }

  async restart(): Promise<Agent> {
    await this.kill();
    return await this.boot();
  }

  status(id: string): VmStatus | undefined {
    return this.agent?.engine.report().vms.find((vm) => vm.id === id);
  }

  /** Lets time pass, in small steps, until it holds; fails when it does not within the given time. */
  async until(holds: () => boolean, withinMs = 600_000): Promise<void> {
    for (let passed = 0; !holds(); passed += 250) {
      if (passed > withinMs) {
        const stands = stableJson(this.agent?.engine.report() ?? {}).slice(0, 2_000);
        throw new Error(`not reached: ${holds.toString()}; ${stands}`);
      }
      await this.clock.advance(250);
    }
  }

  async untilPhase(id: string, phase: VmStatus['phase'], withinMs?: number): Promise<void> {
    await this.until(() => this.status(id)?.phase === phase, withinMs);
  }
}

export class World extends AnyWorld {
  readonly state = new MemoryStateStore({ host: this.host, calls: this.calls });
  readonly desired = new MemoryDesiredStore({ calls: this.calls });

  protected openStores(): Promise<Stores> {
    return Promise.resolve({ state: this.state, desired: this.desired });
  }

  /** Declares a VM; answers its uid. */
  want(id: string, changes: Partial<VmSpec> = {}): VmUid {
    return this.desired.want(sampleSpec(id, changes));
  }

  record(uid: VmUid): VmRecord {
    const record = this.state.record(uid);
    if (record === undefined) throw new Error(`no record of ${uid}`);
    return record;
  }
}
