/**
 * Every call of every fake port, in one order: who was asked for what, about which VM, and how it ended.
 *
 * It is also where a test steps in. `onCall` is told before and after each call and may throw, wait, or never come
 * back, so that "the agent dies here" can be tried at each call of each port in turn. `fail`, `hang` and `on` do it for
 * one member. Members that answer at once, not through a promise, are not calls: no agent dies inside one.
 */
import type {
  ConsoleSource,
  DesiredStore,
  DiskService,
  HostNetwork,
  ImageSource,
  Network,
  PortPublisher,
  Provisioner,
  PumpHooks,
  SeedSource,
  StateStore,
  Supervisor,
  VmUid,
} from '@eitri/core/contracts';

/** The ports that have a fake here. */
export interface Ports {
  readonly provisioner: Provisioner;
  readonly network: Network;
  readonly hostNetwork: HostNetwork;
  readonly portPublisher: PortPublisher;
  readonly pumpHooks: PumpHooks;
  readonly consoleSource: ConsoleSource;
  readonly supervisor: Supervisor;
  readonly stateStore: StateStore;
  readonly desiredStore: DesiredStore;
  readonly imageSource: ImageSource;
  readonly diskService: DiskService;
  readonly seedSource: SeedSource;
}

/** A port by its name in a call: `provisioner`, `network`, … */
export type PortName = keyof Ports;
/** `provisioner.boot`, `stateStore.writeRecord`, … */
export type PortMember = { [P in PortName]: `${P}.${keyof Ports[P] & string}` }[PortName];

/** One of the two moments of a call, before it and after it. */
export interface PortCall {
  /** Counts calls from 1; the two phases of a call share it. */
  readonly seq: number;
  readonly member: PortMember;
  /** The VM it is about; absent where it is about none. */
  readonly uid?: VmUid;
  readonly phase: 'before' | 'after';
  /** How it ended; absent before. */
  readonly outcome?: 'resolved' | 'rejected';
}

/** May throw or never resolve: then the caller sees just that. After a call, what it throws replaces the result. */
export type CallHook = (call: PortCall) => void | Promise<void>;

/** A promise that nobody settles: where an agent was killed. */
export const never = (): Promise<never> => new Promise(() => undefined);

const MAX_ENTRIES = 100_000;

interface Rule {
  readonly member: PortMember;
  readonly uid: VmUid | undefined;
  readonly act: CallHook;
  left: number;
}

/**
 * What fake ports share to be watched and disturbed: one log, handed to each of them. Bounded: the oldest entries go.
 */
export class CallLog {
  /** Told of each call, before it and after it. */
  onCall: CallHook | undefined;
  private readonly kept: PortCall[] = [];
  private rules: Rule[] = [];
  private lastSeq = 0;

  constructor(onCall?: CallHook) {
    this.onCall = onCall;
  }

  /** What was told so far, oldest first; at most the last 100,000. */
  get entries(): readonly PortCall[] {
    return this.kept;
  }

  /**
   * Members called, in the order in which they were asked, all VMs or one: `['provisioner.boot', 'network.reserveIp']`.
   */
  members(uid?: VmUid): readonly PortMember[] {
    return this.kept.filter((c) => c.phase === 'before' && (uid === undefined || c.uid === uid)).map((c) => c.member);
  }

  /** How often a member was asked. */
  count(member: PortMember, uid?: VmUid): number {
    return this.members(uid).filter((m) => m === member).length;
  }

  /** The next `times` calls of the member reject with this, without having done anything. */
  fail(member: PortMember, error: Error, times = 1, uid?: VmUid): void {
    this.on(member, () => Promise.reject(error), times, uid);
  }

  /** The next `times` calls of the member are never answered. */
  hang(member: PortMember, times = 1, uid?: VmUid): void {
    this.on(member, never, times, uid);
  }

  /** Acts before the next `times` calls of the member. */
  on(member: PortMember, act: CallHook, times = Number.POSITIVE_INFINITY, uid?: VmUid): void {
    this.rules.push({ member, uid, act, left: times });
  }

  /** Takes back what `fail`, `hang` and `on` asked for, for one member or for all. */
  heal(member?: PortMember): void {
    this.rules = this.rules.filter((r) => member !== undefined && r.member !== member);
  }

  /** Forgets what was told; rules stay. */
  clear(): void {
    this.kept.length = 0;
  }

  /** How a fake wraps the work of one of its members. */
  async around<T>(member: PortMember, uid: VmUid | undefined, work: () => T | Promise<T>): Promise<T> {
    const seq = ++this.lastSeq;
    const about = uid === undefined ? { seq, member } : { seq, member, uid };
    const before: PortCall = { ...about, phase: 'before' };
    this.keep(before);
    await this.onCall?.(before);
    for (const rule of this.rules) {
      if (rule.member !== member || (rule.uid !== undefined && rule.uid !== uid) || rule.left <= 0) continue;
      rule.left--;
      await rule.act(before);
    }
    let result: T;
    try {
      result = await work();
    } catch (error) {
      await this.ended({ ...about, phase: 'after', outcome: 'rejected' });
      throw error;
    }
    await this.ended({ ...about, phase: 'after', outcome: 'resolved' });
    return result;
  }

  private async ended(call: PortCall): Promise<void> {
    this.keep(call);
    await this.onCall?.(call);
  }

  private keep(call: PortCall): void {
    this.kept.push(call);
    if (this.kept.length > MAX_ENTRIES) this.kept.splice(0, this.kept.length - MAX_ENTRIES);
  }
}
