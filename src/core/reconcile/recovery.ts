/**
 * Who is started again after the host rebooted, in which order, and how many at a time: a host that comes back with sixty
 * guests must not start sixty at once, the oldest come first, and no newcomer takes the room of one that ran before.
 *
 * Owns the line. A VM waits in it, stands at its head for as long as it comes up, and leaves it when it runs, when it has
 * something else to wait for, or when nobody wants it running: whoever can't come up holds nobody up. It knows records
 * alone, so it works while the control plane is away.
 */
import type { VmRecord, VmUid } from '../contracts/index.js';

/** Where a VM stands in the line. */
export interface RecoveryPlace {
  /** Counted from 1, for as long as the agent runs. */
  readonly position: number;
  readonly total: number;
  /** Whether it may be started now. */
  readonly turn: boolean;
}

export interface RecoveryOptions {
  /** How many come up at a time; 0: any number. */
  readonly width: number;
  /** Reserves what the VM takes when it runs; answers whether there was room. Asked once each, in the line's order. */
  readonly reserve: (record: VmRecord) => boolean;
  /** Called with those whose turn has come. */
  readonly moved: (uids: readonly VmUid[]) => void;
}

export class RecoveryLine {
  private waiting: readonly VmUid[] = [];
  private positions: ReadonlyMap<VmUid, number> = new Map();
  private reserved: ReadonlySet<VmUid> = new Set();

  constructor(private readonly options: RecoveryOptions) {}

  /** Takes in those that ran when the host went down, as far as they were not started again by an earlier agent. */
  fill(records: readonly VmRecord[], bootId: string): void {
    const lost = records.filter((record) => record.bootId !== bootId && wentDownWithHost(record)).sort(oldestFirst);
    this.positions = new Map(lost.map(({ uid }, at) => [uid, at + 1]));
    this.reserved = new Set(lost.filter(this.options.reserve).map(({ uid }) => uid));
    this.waiting = lost.map(({ uid }) => uid);
  }

  /** Undefined: it is not, or no longer, in the line. */
  placeOf(uid: VmUid): RecoveryPlace | undefined {
    const at = this.waiting.indexOf(uid);
    const position = this.positions.get(uid);
    if (at < 0 || position === undefined) return undefined;
    return { position, total: this.positions.size, turn: this.isTurn(at) };
  }

  /** Whether room is kept for it while it waits. */
  keepsRoom(uid: VmUid): boolean {
    return this.reserved.has(uid) && this.waiting.includes(uid);
  }

  /** It came up, or will not for now. */
  leave(uid: VmUid): void {
    if (!this.waiting.includes(uid)) return;
    const before = new Set(this.atHead());
    this.waiting = this.waiting.filter((one) => one !== uid);
    const next = this.atHead().filter((one) => !before.has(one));
    if (next.length > 0) this.options.moved(next);
  }

  /** The line as it stands, to try something out on: `moved` is told of its moves alone, and nothing is reserved anew. */
  copy(moved: RecoveryOptions['moved']): RecoveryLine {
    const copy = new RecoveryLine({ ...this.options, moved });
    copy.waiting = this.waiting;
    copy.positions = this.positions;
    copy.reserved = this.reserved;
    return copy;
  }

  private atHead(): readonly VmUid[] {
    return this.waiting.filter((_, at) => this.isTurn(at));
  }

  private isTurn(at: number): boolean {
    return this.options.width === 0 || at < this.options.width;
  }
}

const wentDownWithHost = ({ bootId, lastExit }: VmRecord): boolean =>
  bootId !== undefined || lastExit?.cause === 'hostReboot';

function oldestFirst(a: VmRecord, b: VmRecord): number {
  return a.createdAt - b.createdAt || (a.uid < b.uid ? -1 : 1);
}
