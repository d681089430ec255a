import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleCapabilities, sampleSpec, sampleUid } from '@eitri/conformance';
import type { DesiredLife, Observation, PausedBy, VmPaths, VmRecord, VmSpec } from '@eitri/core/contracts';
import { AdmissionLedger, decide, DEFAULT_POLICY, memoryCap, newRecord, specDigest } from '@eitri/core/reconcile';
import type { Facts } from '@eitri/core/reconcile';

const uid = sampleUid(1);
const spec = sampleSpec('web-1', { diskGib: 2 });
const paths: VmPaths = {
  folder: '/s', guestFolder: '/s/g', rootDisk: '/s/g/disk.raw', seed: '/s/g/seed.img', vmmLog: '/s/g/vmm.log',
  pidFile: '/s/vmm.pid', serialLog: '/s/serial.log', keysFolder: '/s/keys', runFolder: '/r',
}; // prettier-ignore

const capabilities = sampleCapabilities();

const observations: fc.Arbitrary<Observation> = fc.oneof(
  fc.constantFrom<Observation>(
    { state: 'absent' },
    { state: 'exited' },
    { state: 'exited', code: 0 },
    { state: 'exited', code: 1 },
    { state: 'unknown', why: 'pid 7 may not be signalled' },
    { state: 'starting', pid: 7 },
    { state: 'running', pid: 7 },
    { state: 'paused', pid: 7, by: 'fullDisk' },
    { state: 'paused', pid: 7, by: 'fault' },
    { state: 'paused', pid: 7, by: 'other' },
    { state: 'stopping', pid: 7 },
  ),
);

const specs: fc.Arbitrary<VmSpec> = fc
  .record({
    power: fc.constantFrom('running', 'stopped'),
    restart: fc.constantFrom('always', 'on-failure', 'never'),
    cpus: fc.integer({ min: 1, max: 4 }),
    diskGib: fc.integer({ min: 1, max: 4 }),
    image: fc.constantFrom({ kind: 'catalog', name: 'a' }, { kind: 'catalog', name: 'b' }),
  })
  .map((changes) => sampleSpec('web-1', changes as Partial<VmSpec>));

const ms = fc.constantFrom(0, 1_000, 29_999, 30_000, 90_000, 100_000, 300_000, 4_000_000);

const records: fc.Arbitrary<VmRecord> = fc
  .record({
    spec: specs,
    bootAttempted: fc.boolean(),
    boots: fc.nat({ max: 3 }),
    bootId: fc.option(fc.constantFrom('boot-1', 'boot-0'), { nil: undefined }),
    attempts: fc.nat({ max: 4 }),
    crashes: fc.nat({ max: 9 }),
    waitedMs: ms,
    upMs: ms,
    shelved: fc.option(fc.record({ absence: fc.constantFrom('this', 'earlier'), ms }), { nil: undefined }),
    destroying: fc.boolean(),
    stop: fc.option(
      fc.record({
        elapsedMs: ms,
        presses: fc.nat({ max: 2 }),
        cancelled: fc.boolean(),
        step: fc.constantFrom('powerButton', 'terminate'),
      }),
      { nil: undefined },
    ),
    failure: fc.option(fc.record({ permanent: fc.boolean(), same: fc.boolean() }), { nil: undefined }),
    cause: fc.option(fc.constantFrom('self', 'stop', 'hostReboot'), { nil: undefined }),
    disk: fc.boolean(),
    seed: fc.boolean(),
    backend: fc.constantFrom('fake', 'fake', 'fake', 'other'),
  })
  .map(({ bootId, shelved, stop, failure, cause, disk, seed, ...of }): VmRecord => {
    const base = newRecord({ uid, id: spec.id, spec: of.spec, backend: 'fake', paths, now: 0 });
    return {
      ...base,
      ...of,
      bootAttempted: of.bootAttempted || of.boots > 0 || bootId !== undefined,
      prepared: { ...base.prepared, disk, seed, ...(disk ? { image: { algorithm: 'sha256', hex: 'ab' } } : {}) },
      ...(bootId === undefined ? {} : { bootId }),
      ...(shelved === undefined ? {} : { shelved }),
      ...(stop === undefined ? {} : { stop: stop }),
      ...(cause === undefined ? {} : { lastExit: { at: 0, cause: cause } }),
      ...(failure === undefined
        ? {}
        : {
            failure: {
              code: 'VmmFailed' as const,
              message: 'no',
              permanent: failure.permanent,
              at: 0,
              specDigest: failure.same ? specDigest(of.spec) : 'other',
            },
          }),
    };
  });

const lives: fc.Arbitrary<DesiredLife | undefined> = fc.oneof(
  fc.constant(undefined),
  specs.map((s): DesiredLife => ({ kind: 'present', uid, id: s.id, spec: s })),
  fc.constant<DesiredLife>({ kind: 'tombstoned', uid, id: spec.id, spec, absence: 'this' }),
  fc.boolean().map((held): DesiredLife => ({ kind: 'vanished', uid, id: spec.id, spec, absence: 'this', held })),
);

const facts: fc.Arbitrary<Facts> = fc
  .record({
    record: fc.option(records, { nil: undefined }),
    wanted: lives,
    observed: observations,
    admitted: fc.boolean(),
    blocked: fc.boolean(),
    portsStale: fc.boolean(),
    resumeDue: fc.boolean(),
    recovery: fc.constantFrom(undefined, { position: 1, total: 9, turn: true }, { position: 9, total: 9, turn: false }),
  })
  .map(({ admitted, blocked, record, observed, ...of }) => ({
    ...of,
    record,
    // A VMM is only ever seen of a VM that has a record.
    observed: record === undefined ? { state: 'absent' as const } : observed,
    bootId: 'boot-1',
    backend: 'fake',
    capabilities,
    admission: admitted ? { ok: true as const } : { ok: false as const, why: 'full' },
    createBlocked: blocked ? 'a record can not be read' : undefined,
    policy: DEFAULT_POLICY,
  }));

const alive = (observed: Observation): boolean => 'pid' in observed;

/** `then`, for each case in which `given` holds. */
function always(given: (f: Facts) => boolean, then: (f: Facts, decision: ReturnType<typeof decide>) => void): void {
  fc.assert(
    fc.property(facts.filter(given), (f) => {
      then(f, decide(f));
    }),
    { numRuns: 2_000 },
  );
}

describe('decide, for any facts,', () => {
  it('answers, and answers the same again', () => {
    always(
      () => true,
      (f, decision) => {
        expect(decide(f)).toEqual(decision);
      },
    );
  });

  it('does nothing about what can not be seen', () => {
    always(
      (f) => f.observed.state === 'unknown',
      (_f, decision) => {
        expect(decision).toMatchObject({ do: 'rest', phase: 'Unknown' });
      },
    );
  });

  it('never boots beside a VMM that lives', () => {
    always(
      (f) => alive(f.observed),
      (_f, decision) => {
        expect(['boot', 'create', 'fetchImage', 'prepareDisk', 'growDisk', 'buildSeed']).not.toContain(decision.do);
      },
    );
  });

  it('never makes a disk for a VM that ever attempted a boot', () => {
    always(
      (f) => f.record?.bootAttempted === true,
      (_f, decision) => {
        expect(decision.do).not.toBe('prepareDisk');
      },
    );
  });

  it('destroys only by a tombstone or a vanishing after its grace, or what it had begun to destroy', () => {
    always(
      () => true,
      (f, decision) => {
        if (decision.do !== 'destroy') return;
        const { record, wanted, policy } = f;
        const missedMs = record?.shelved?.absence === 'this' ? record.shelved.ms : 0;
        const byTombstone = wanted?.kind === 'tombstoned' && missedMs >= policy.tombstoneGraceMs;
        const byVanishing = wanted?.kind === 'vanished' && !wanted.held && missedMs >= policy.vanishGraceMs;
        expect(record?.destroying === true || byTombstone || byVanishing).toBe(true);
      },
    );
  });

  it('never acts for another backend', () => {
    always(
      (f) => f.record?.backend === 'other',
      (_f, decision) => {
        expect(decision.do).toBe('rest');
      },
    );
  });

  it('never starts what is wanted stopped, deleted, vanished, or by nobody', () => {
    always(
      (f) => f.wanted?.kind !== 'present' || f.wanted.spec.power === 'stopped',
      (_f, decision) => {
        expect(['boot', 'create', 'prepareDisk', 'fetchImage']).not.toContain(decision.do);
      },
    );
  });

  it('never shuts a guest down that is wanted running', () => {
    always(
      (f) => f.wanted?.kind === 'present' && f.wanted.spec.power === 'running' && f.record?.destroying !== true,
      (_f, decision) => {
        expect(decision.do).not.toBe('shutdown');
      },
    );
  });

  it('starts nothing that does not fit', () => {
    always(
      (f) => !f.admission.ok,
      (_f, decision) => {
        expect(['boot', 'create', 'prepareDisk', 'fetchImage']).not.toContain(decision.do);
      },
    );
  });

  it('kills only after the whole grace and ten seconds', () => {
    always(
      () => true,
      (f, decision) => {
        if (decision.do !== 'shutdown') return;
        const elapsed = f.record?.stop?.elapsedMs ?? 0;
        const graceMs = (f.record?.spec.shutdown.graceSeconds ?? 0) * 1_000;
        if (decision.step === 'kill') expect(elapsed).toBeGreaterThanOrEqual(graceMs + 10_000);
        if (decision.step === 'terminate') expect(elapsed).toBeGreaterThanOrEqual(graceMs);
      },
    );
  });

  it('looks again in a time that is not negative', () => {
    always(
      () => true,
      (_f, decision) => {
        if (decision.do === 'rest') expect(decision.wakeMs ?? 1).toBeGreaterThanOrEqual(0);
      },
    );
  });
});

describe('a guest that stands still', () => {
  const record: VmRecord = {
    ...newRecord({ uid, id: spec.id, spec, backend: 'fake', paths, now: 0 }),
    bootId: 'boot-1',
    boots: 1,
  };
  const paused = (by: PausedBy, resumeDue: boolean): Facts => ({
    record,
    wanted: { kind: 'present', uid, id: spec.id, spec },
    observed: { state: 'paused', pid: 7, by },
    bootId: 'boot-1',
    backend: 'fake',
    capabilities,
    admission: { ok: true },
    recovery: undefined,
    createBlocked: undefined,
    portsStale: false,
    resumeDue,
    policy: DEFAULT_POLICY,
  });

  it('on a full disk is let try again, and in between says what to do', () => {
    expect(decide(paused('fullDisk', true))).toEqual({ do: 'resume' });
    expect(decide(paused('fullDisk', false))).toMatchObject({ do: 'rest', phase: 'Paused' });
    expect(decide(paused('fullDisk', false))).toHaveProperty('message', expect.stringMatching(/full.*free.*by itself/));
  });

  it.each([
    ['other', /paused it/],
    ['fault', /vmm\.log.*stop and start/],
  ] as const)('for another reason (%s) is left as it is, however long, and says so', (by, message) => {
    const decision = decide(paused(by, true));
    expect(decision).toMatchObject({ do: 'rest', phase: 'Paused' });
    expect(decision).toHaveProperty('message', expect.stringMatching(message));
  });

  it('is stopped like any other when that is wanted', () => {
    const off: VmSpec = { ...spec, power: 'stopped' };
    const wanted: DesiredLife = { kind: 'present', uid, id: spec.id, spec: off };
    const facts: Facts = { ...paused('fullDisk', false), wanted, record: { ...record, spec: off } };
    expect(decide(facts)).toMatchObject({ do: 'shutdown' });
    // With room it ends well: it is still let try.
    expect(decide({ ...facts, resumeDue: true })).toEqual({ do: 'resume' });
  });
});

describe('a backend without a power button', () => {
  it('terminates at once and kills ten seconds later', () => {
    const record: VmRecord = {
      ...newRecord({ uid, id: spec.id, spec, backend: 'fake', paths, now: 0 }),
      bootId: 'boot-1',
      boots: 1,
    };
    const base: Facts = {
      record,
      wanted: { kind: 'tombstoned', uid, id: spec.id, spec, absence: 'this' },
      observed: { state: 'running', pid: 7 },
      bootId: 'boot-1',
      backend: 'fake',
      capabilities: { ...capabilities, powerButton: false },
      admission: { ok: true },
      recovery: undefined,
      createBlocked: undefined,
      portsStale: false,
      resumeDue: false,
      policy: DEFAULT_POLICY,
    };
    expect(decide(base)).toMatchObject({ do: 'shutdown', step: 'terminate' });
    const later = { elapsedMs: 10_000, presses: 0, cancelled: false, step: 'terminate' as const };
    expect(decide({ ...base, record: { ...record, stop: later } })).toMatchObject({ do: 'shutdown', step: 'kill' });
  });
});

describe('a shutdown that was taken back', () => {
  it('long ago does not shorten the next one', () => {
    always(
      (f) => f.record?.stop?.cancelled === true,
      (_f, decision) => {
        expect(decision).not.toMatchObject({ do: 'shutdown', step: 'kill' });
        expect(decision).not.toMatchObject({ do: 'shutdown', step: 'terminate' });
      },
    );
  });
});

describe('a life without a record', () => {
  it('gets none while a record that can not be read may be of its name', () => {
    always(
      (f) => f.record === undefined && f.createBlocked !== undefined,
      (_f, decision) => {
        expect(decision.do).not.toBe('create');
      },
    );
  });
});

describe('a VMM that the record does not know of', () => {
  it('is adopted before anything else is done to it, whatever is wanted', () => {
    always(
      (f) =>
        f.record?.bootId === undefined && f.record?.backend === 'fake' && !f.record.destroying && alive(f.observed),
      (_f, decision) => {
        expect(decision.do).toBe('adopt');
      },
    );
  });
});

describe('the admission ledger', () => {
  it('never holds more than its caps, whatever is asked in whatever order', () => {
    const need = fc.record({
      vcpus: fc.nat({ max: 8 }),
      memoryMib: fc.nat({ max: 4096 }),
      diskGib: fc.nat({ max: 50 }),
    });
    const asks = fc.array(fc.record({ who: fc.constantFrom('a', 'b', 'c', 'd'), need, drop: fc.boolean() }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(asks, (history) => {
        const caps = { vcpus: 8, memoryMib: 4096, diskGib: 60 };
        const ledger = new AdmissionLedger(caps);
        for (const { who, need: wanted, drop } of history) {
          if (drop) ledger.hold(who, { vcpus: 0, memoryMib: 0, diskGib: 0 });
          else if (ledger.verdict(who, wanted).ok) ledger.hold(who, wanted);
          const total = ledger.total();
          expect(total.vcpus).toBeLessThanOrEqual(caps.vcpus);
          expect(total.memoryMib).toBeLessThanOrEqual(caps.memoryMib);
          expect(total.diskGib).toBeLessThanOrEqual(caps.diskGib);
        }
      }),
    );
  });

  it('names the flag and what is free', () => {
    const ledger = new AdmissionLedger({ vcpus: 4, memoryMib: 0, diskGib: 0 });
    ledger.hold('a', { vcpus: 3, memoryMib: 9_999, diskGib: 0 });
    expect(ledger.verdict('b', { vcpus: 2, memoryMib: 1, diskGib: 1 })).toEqual({
      ok: false,
      why: 'needs 2 vCPUs, 1 of 4 (--max-vcpus) are free',
    });
  });

  it('does not refuse what is held already when a cap was lowered', () => {
    const ledger = new AdmissionLedger({ vcpus: 1, memoryMib: 0, diskGib: 0 });
    ledger.hold('a', { vcpus: 4, memoryMib: 0, diskGib: 0 });
    expect(ledger.verdict('a', { vcpus: 4, memoryMib: 0, diskGib: 0 }).ok).toBe(true);
    expect(ledger.verdict('a', { vcpus: 5, memoryMib: 0, diskGib: 0 }).ok).toBe(false);
  });

  it.each([
    [0, 0, undefined],
    [4_096, 0, { flag: '--max-mem-mb', most: 4_096 }],
    [0, 1_024, { flag: '--memory-reserve', most: 7_168 }],
    [4_096, 1_024, { flag: '--max-mem-mb', most: 4_096 }],
    [7_500, 1_024, { flag: '--memory-reserve', most: 7_168 }],
    [0, 9_000, { flag: '--memory-reserve', most: 0 }],
  ])('with --max-mem-mb %i and --memory-reserve %i of 8192 MiB is bound by the tighter one', (cap, reserve, most) => {
    expect(memoryCap({ maxMemoryMib: cap, memoryReserveMib: reserve }, 8_192)).toEqual(most);
  });

  it('whose reserve leaves nothing lets nothing in, and names the reserve', () => {
    const ledger = new AdmissionLedger(
      { vcpus: 0, memoryMib: 0, diskGib: 0 },
      memoryCap({ maxMemoryMib: 0, memoryReserveMib: 9_000 }, 8_192),
    );
    expect(ledger.verdict('a', { vcpus: 1, memoryMib: 64, diskGib: 1 })).toEqual({
      ok: false,
      why: 'needs 64 MiB of memory, 0 of 0 (--memory-reserve) are free',
    });
  });
});
