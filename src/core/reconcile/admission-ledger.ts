/**
 * Who holds how much of what this host offers.
 *
 * Owns the sums; never decides what a VM does. A stopped VM holds its disk and no cpu or memory. All members are
 * synchronous: between the verdict and the reservation nothing else can run, so simultaneous creates never pass the
 * same figure twice.
 */

/** What a VM takes of its host. */
export interface Need {
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly diskGib: number;
}

/** What a VM holds that does not exist. */
export const NOTHING: Need = { vcpus: 0, memoryMib: 0, diskGib: 0 };

/** Whether a need fits; `why` is a sentence that names the limit and the flag that sets it. */
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly why: string };

/** A bound and the flag that set it; undefined: there is none. */
export interface Cap {
  readonly flag: string;
  readonly most: number;
}

const capOf = (flag: string, most: number): Cap | undefined => (most === 0 ? undefined : { flag, most });

/** The tighter one of the memory cap and of what the reserve leaves of the host's memory. */
export function memoryCap(
  policy: { readonly maxMemoryMib: number; readonly memoryReserveMib: number },
  hostMemoryMib: number,
): Cap | undefined {
  const cap = capOf('--max-mem-mb', policy.maxMemoryMib);
  if (policy.memoryReserveMib === 0) return cap;
  // A reserve as large as the host leaves nothing, which is another thing than no bound.
  const left: Cap = { flag: '--memory-reserve', most: Math.max(0, hostMemoryMib - policy.memoryReserveMib) };
  return cap === undefined || left.most < cap.most ? left : cap;
}

/**
 * The sums over all VMs of one host, against the operator's limits. Synchronous throughout: between a verdict and its
 * `hold` nothing else can run.
 */
export class AdmissionLedger {
  private readonly held = new Map<string, Need>();

  /**
   * `caps`: 0 in a field means no limit. `memory` stands in front of the cap on memory, for a bound whose 0 means nothing.
   */
  constructor(
    private readonly caps: Need,
    private readonly memory: Cap | undefined = capOf('--max-mem-mb', caps.memoryMib),
  ) {}

  /** Whether `uid` could hold `need` in place of what it holds now. */
  verdict(uid: string, need: Need): Verdict {
    const now = this.held.get(uid) ?? NOTHING;
    const total = this.total();
    const rows: readonly (readonly [string, keyof Need, Cap | undefined])[] = [
      ['vCPUs', 'vcpus', capOf('--max-vcpus', this.caps.vcpus)],
      ['MiB of memory', 'memoryMib', this.memory],
      ['GiB of disk', 'diskGib', capOf('--max-disk-gb', this.caps.diskGib)],
    ];
    for (const [what, field, cap] of rows) {
      const others = total[field] - now[field];
      // Who takes no more than it holds is never refused, also when the cap was lowered under it.
      if (cap === undefined || need[field] <= now[field] || others + need[field] <= cap.most) continue;
      const free = Math.max(0, cap.most - others);
      return { ok: false, why: `needs ${need[field]} ${what}, ${free} of ${cap.most} (${cap.flag}) are free` };
    }
    return { ok: true };
  }

  /** Sets what `uid` holds. Answers whether something was freed. */
  hold(uid: string, need: Need): boolean {
    const before = this.held.get(uid) ?? NOTHING;
    if (need.vcpus === 0 && need.memoryMib === 0 && need.diskGib === 0) this.held.delete(uid);
    else this.held.set(uid, need);
    return need.vcpus < before.vcpus || need.memoryMib < before.memoryMib || need.diskGib < before.diskGib;
  }

  /** The same sums, to try something out on. */
  copy(): AdmissionLedger {
    const copy = new AdmissionLedger(this.caps, this.memory);
    for (const [uid, need] of this.held) copy.held.set(uid, need);
    return copy;
  }

  total(): Need {
    let sum = NOTHING;
    for (const need of this.held.values()) {
      sum = {
        vcpus: sum.vcpus + need.vcpus,
        memoryMib: sum.memoryMib + need.memoryMib,
        diskGib: sum.diskGib + need.diskGib,
      };
    }
    return sum;
  }
}
