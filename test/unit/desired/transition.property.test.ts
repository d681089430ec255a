/**
 * Random histories of a control plane, an engine that settles, and an operator: what must hold after each step.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleSpec } from '@eitri/conformance';
import type { DesiredSnapshot, VmId, VmUid } from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import { decodeDesired, encodeDesired, type StoredDesired } from '../../../src/desired/desired-file.js';
import { nextDesired, released, settledLife } from '../../../src/desired/transition.js';
import { CountedRandom } from '../../support/ports.js';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'] as VmId[];

type Step =
  | {
      readonly do: 'accept';
      readonly declared: readonly VmId[];
      readonly buried: readonly VmId[];
      readonly unreadable: readonly VmId[];
      readonly cpus: number;
    }
  | { readonly do: 'settle'; readonly pick: number }
  | { readonly do: 'release' };

const some = fc.subarray(NAMES);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('accept' as const),
      declared: some,
      buried: some,
      unreadable: some,
      cpus: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('settle' as const), pick: fc.nat(NAMES.length * 2) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'release' as const }) },
);

const snapshotOf = (s: Extract<Step, { do: 'accept' }>): DesiredSnapshot => ({
  lineage: 'l',
  epoch: 1,
  vms: s.declared.map((id) => ({ spec: sampleSpec(id, { cpus: s.cpus }) })),
  tombstones: s.buried.filter((id) => !s.declared.includes(id)).map((id) => ({ id })),
  unreadable: s.unreadable,
  issues: [],
});

function run(
  steps: readonly Step[],
  check: (before: StoredDesired | undefined, after: StoredDesired, s: Step) => void,
): void {
  const random = new CountedRandom();
  let state: StoredDesired | undefined;
  for (const s of steps) {
    const before = state;
    if (s.do === 'accept') {
      const next = nextDesired(state, snapshotOf(s), { adopt: false, uuid: random.uuid });
      if (next.kind === 'refused') throw new Error(next.why);
      state = next.state;
    } else if (state === undefined) continue;
    else if (s.do === 'release') state = released(state, random.uuid);
    else {
      const life = state.lives[s.pick % Math.max(1, state.lives.length)];
      if (life !== undefined) state = settledLife(state, life.uid, random.uuid);
    }
    check(before, state, s);
  }
}

const holds = (check: Parameters<typeof run>[1]): void => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => run(steps, check)),
    { numRuns: 400 },
  );
};

const livesOf = (state: StoredDesired | undefined) => state?.lives ?? [];

describe('any history', () => {
  it('loses no uid but by settling it', () => {
    holds((before, after, s) => {
      const kept = new Set(after.lives.map((life) => life.uid));
      const lost = livesOf(before).filter((life) => !kept.has(life.uid));
      expect(lost.length).toBe(s.do === 'settle' && livesOf(before).length > 0 ? 1 : 0);
    });
  });

  it('brings no settled uid back, and gives each name one life at a time', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const gone = new Set<VmUid>();
        run(steps, (before, after) => {
          const now = after.lives.map((life) => life.uid);
          for (const { uid } of livesOf(before)) if (!now.includes(uid)) gone.add(uid);
          expect(now.filter((uid) => gone.has(uid))).toEqual([]);
          expect(new Set(after.lives.map((life) => life.id)).size).toBe(after.lives.length);
        });
      }),
      { numRuns: 400 },
    );
  });

  it('lets nothing vanish that can’t be read, and never takes what is declared for absent', () => {
    holds((before, after, s) => {
      if (s.do !== 'accept') return;
      for (const { id, kind } of livesOf(before)) {
        const now = after.lives.find((life) => life.id === id);
        if (s.declared.includes(id)) expect(now?.kind).toBe('present');
        else if (s.unreadable.includes(id) && !s.buried.includes(id)) expect(now?.kind).toBe(kind);
      }
      for (const id of s.declared) expect(after.lives.find((life) => life.id === id)?.spec.cpus).toBe(s.cpus);
    });
  });

  it('lets at most one VM, or a quarter of those present, vanish in one word without a hold', () => {
    holds((before, after, s) => {
      if (s.do !== 'accept') return;
      const present = livesOf(before).filter((life) => life.kind === 'present');
      const vanished = present.filter((life) =>
        after.lives.some((now) => now.uid === life.uid && now.kind === 'vanished'),
      );
      const unheld = vanished.filter((life) => after.lives.some((now) => now.uid === life.uid && !now.held));
      expect(unheld.length).toBeLessThanOrEqual(Math.max(1, present.length / 4));
    });
  });

  it('keeps a hold until the VM is declared, deleted or let go, and holds only what vanished', () => {
    holds((before, after, s) => {
      for (const life of after.lives) if (life.held) expect(life.kind).toBe('vanished');
      if (s.do !== 'accept') return;
      for (const life of livesOf(before).filter((old) => old.held)) {
        const now = after.lives.find((other) => other.uid === life.uid);
        expect(now?.held).toBe(!s.declared.includes(life.id) && !s.buried.includes(life.id));
      }
    });
  });

  it('counts the revision up by one exactly where something changed, and survives its file', () => {
    holds((before, after, s) => {
      expect(decodeDesired(encodeDesired(after))).toEqual(after);
      if (s.do !== 'accept') return;
      const changed = before === undefined || stableJson(before.lives) !== stableJson(after.lives);
      expect(after.revision).toBe((before?.revision ?? 0) + (changed ? 1 : 0));
      expect(after.lives.map((life) => life.uid)).toEqual(after.lives.map((life) => life.uid).toSorted());
    });
  });
});
