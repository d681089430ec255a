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

/**
 * The sums over all VMs of one host, against the operator's limits. Synchronous throughout: between a verdict and its
 * `hold` nothing else can run.
 */
export class AdmissionLedger {
  private readonly held = new Map<string, Need>();

  /** `caps`: 0 in a field means no limit. */
  constructor(private readonly caps: Need) {}

  /** Whether `uid` could hold `need` in place of what it holds now. */
  verdict(uid: string, need: Need): Verdict {
    const now = this.held.get(uid) ?? NOTHING;
    const total = this.total();
    const rows: readonly (readonly [string, string, number, number, number, number])[] = [
      ['vCPUs', '--max-vcpus', this.caps.vcpus, total.vcpus - now.vcpus, need.vcpus, now.vcpus],
      [
        'MiB of memory',
        '--max-mem-mb',
        this.caps.memoryMib,
        total.memoryMib - now.memoryMib,
        need.memoryMib,
        now.memoryMib,
      ],
      ['GiB of disk', '--max-disk-gb', this.caps.diskGib, total.diskGib - now.diskGib, need.diskGib, now.diskGib],
    ];
    for (const [what, flag, cap, others, wanted, mine] of rows) {
      // Who takes no more than it holds is never refused, also when the cap was lowered under it.
      if (cap === 0 || wanted <= mine || others + wanted <= cap) continue;
      const free = Math.max(0, cap - others);
      return {
        ok: false,
        why: `needs ${wanted} ${what}, ${free} of ${cap} (${flag}) are free`,
      };
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
