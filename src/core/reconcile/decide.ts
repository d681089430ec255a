/**
 * Decides the next step of one VM from facts alone: pure, total, and the only place where it is decided.
 *
 * The rows are tried from top to bottom; the first that holds answers. `alive`: starting, running, paused or stopping.
 *
 *   observed unknown                         → rest: nothing is booted and nothing destroyed
 *   of another backend                       → rest: only its own may act on it
 *   destroying has begun                     → destroy, whatever is wanted now: there is no way back
 *   a VMM we know of is gone                 → noteExit (itself, asked for, or with its host)
 *   a VMM lives that we don't know of        → adopt, whatever is wanted: its end must be noted too
 *   it stands still on a full disk           → resume, whatever is wanted, now and then
 *   nobody names it          no record       → rest
 *                            record          → rest: kept as it is
 *   tombstoned               no record       → settle
 *                            alive           → shutdown
 *                            grace is over   → destroy, else rest
 *   vanished                 no record       → settle
 *                            held, or grace  → rest: left as it is
 *                            grace is over   → shutdown, destroy
 *   wanted stopped           alive           → shutdown, else clearFailure, rest
 *   wanted running           alive           → cancelStop, forgetStop, applySpec(live), publish, calm, rest
 *                            failed for good → rest until the declaration changes (then clearFailure)
 *                            waiting         → rest until the wait is over
 *                            never booted    → create → fetchImage → prepareDisk → prepareVolumes → buildSeed → boot
 *                            booted before   → by restart policy and crash backoff → applySpec(boot) → growDisk → boot
 *
 * A shutdown presses the button at 0 and at a third of the grace, terminates at its end, and kills ten seconds later.
 */
import type {
  Capabilities,
  DesiredLife,
  Observation,
  PausedBy,
  StopState,
  VmPhase,
  VmRecord,
  VmSpec,
} from '../contracts/index.js';
import { doubling } from '../kit/index.js';
import type { Action, Decision, Rest } from './actions.js';
import type { Verdict } from './admission-ledger.js';
import { volumeKeys } from './left-behind.js';
import type { EnginePolicy } from './policy.js';
import type { RecoveryPlace } from './recovery.js';
import { applyAtBoot, liveDiffers, specDigest, unsupported } from './spec-change.js';
import { shelvedMs } from './timers.js';

/** All that a decision depends on, read in one turn. */
export interface Facts {
  readonly record: VmRecord | undefined;
  /** What its control plane wants; undefined: nobody names it. */
  readonly wanted: DesiredLife | undefined;
  readonly observed: Observation;
  /** This boot of the host. */
  readonly bootId: string;
  readonly backend: string;
  readonly capabilities: Capabilities;
  /** Whether what it would hold when running fits into what the host offers. */
  readonly admission: Verdict;
  /** Its place among those that come up after a reboot of the host; undefined: it is none of them. */
  readonly recovery: RecoveryPlace | undefined;
  /** Why a life that has no record yet may not get one; undefined: it may. */
  readonly createBlocked: string | undefined;
  /** Whether a guest that stands still on a full disk has waited long enough to try again. */
  readonly resumeDue: boolean;
  /** Whether the published ports may differ from the declared ones. */
  readonly portsStale: boolean;
  readonly policy: EnginePolicy;
}

/** Whether a VMM of the VM is there, whatever its guest does. `unknown` is no proof of it. */
export function isAlive(observed: Observation): observed is Observation & { readonly pid: number } {
  switch (observed.state) {
    case 'starting':
    case 'running':
    case 'paused':
    case 'stopping':
      return true;
    case 'absent':
    case 'exited':
    case 'unknown':
      return false;
  }
}

/** The next step of one VM. Pure and total: equal facts give equal answers, and it never throws. */
export function decide(facts: Facts): Decision {
  const { record, wanted, observed } = facts;
  if (observed.state === 'unknown') {
    return rest('Unknown', { reason: 'Unknown', message: observed.why });
  }
  if (record !== undefined && record.backend !== facts.backend) {
    return rest('Unknown', {
      reason: 'BackendMissing',
      message: `it was made by backend ${record.backend}, and this agent runs ${facts.backend}`,
    });
  }
  if (record?.destroying === true) return { do: 'destroy' };
  const exit = record === undefined ? undefined : exitToNote(facts, record);
  if (exit !== undefined) return exit;
  if (record !== undefined && record.bootId === undefined && isAlive(observed)) return { do: 'adopt' };
  // Whoever wants what of it: one that is left as it is goes on, and one that is to end needs room to end well.
  if (record !== undefined && observed.state === 'paused' && observed.by === 'fullDisk' && facts.resumeDue) {
    return { do: 'resume' };
  }
  if (wanted === undefined) {
    return record === undefined
      ? rest('Stopped')
      : rest(phaseOf(observed), { message: 'no control plane names it; it is kept' });
  }
  switch (wanted.kind) {
    case 'tombstoned':
      return record === undefined ? { do: 'settle' } : decideTombstoned(facts, record, wanted.absence);
    case 'vanished':
      return record === undefined ? { do: 'settle' } : decideVanished(facts, record, wanted);
    case 'present':
      return wanted.spec.power === 'stopped' ? decideStopped(facts, wanted.spec) : decideRunning(facts, wanted.spec);
  }
}

/** A VMM that the record believes in and that is not there. */
function exitToNote(facts: Facts, record: VmRecord): Action | undefined {
  const { observed } = facts;
  if (record.bootId === undefined || isAlive(observed)) return undefined;
  if (record.bootId !== facts.bootId) return { do: 'noteExit', cause: 'hostReboot' };
  return {
    do: 'noteExit',
    cause: record.stop === undefined ? 'self' : 'stop',
    ...(observed.state === 'exited' && observed.code !== undefined ? { code: observed.code } : {}),
    ...(observed.state === 'exited' && observed.signal !== undefined ? { signal: observed.signal } : {}),
  };
}

function decideTombstoned(facts: Facts, record: VmRecord, absence: string): Decision {
  if (isAlive(facts.observed)) return stopping(facts, record);
  const left = facts.policy.tombstoneGraceMs - shelvedMs(record, absence);
  if (left <= 0) return { do: 'destroy' };
  return rest('Shelved', {
    reason: 'ShelvedTombstoned',
    message: `deleted; destroyed in ${seconds(left)} unless it is taken back`,
    wakeMs: left,
  });
}

function decideVanished(
  facts: Facts,
  record: VmRecord,
  { held, absence }: DesiredLife & { readonly kind: 'vanished' },
): Decision {
  const { observed, policy } = facts;
  if (held) {
    return rest(phaseOf(observed), {
      reason: 'HeldMassVanish',
      message: 'it vanished together with many others: kept until the operator or a tombstone decides',
    });
  }
  const left = policy.vanishGraceMs - shelvedMs(record, absence);
  if (policy.vanishGraceMs === 0 || left > 0) {
    const when = policy.vanishGraceMs === 0 ? 'kept' : `destroyed in ${seconds(left)} of contact`;
    return rest(isAlive(observed) ? phaseOf(observed) : 'Shelved', {
      reason: 'ShelvedVanished',
      message: `its declaration vanished without a tombstone; left as it is, ${when} unless it comes back`,
      ...(policy.vanishGraceMs === 0 ? {} : { wakeMs: left }),
    });
  }
  return isAlive(observed) ? stopping(facts, record) : { do: 'destroy' };
}

function decideStopped(facts: Facts, spec: VmSpec): Decision {
  const { record, observed } = facts;
  if (record === undefined) return rest('Stopped', { message: 'not made yet: it is declared stopped' });
  if (liveDiffers(record, spec)) return { do: 'applySpec', spec, moment: 'live' };
  if (isAlive(observed)) return stopping(facts, record);
  // Who stops it has seen the failure: what is wanted running again is tried again.
  return record.failure === undefined ? rest('Stopped') : { do: 'clearFailure' };
}

function decideRunning(facts: Facts, spec: VmSpec): Decision {
  const { record, observed } = facts;
  if (record !== undefined && isAlive(observed)) return decideAlive(facts, record, spec, observed);
  const lack = unsupported(spec, facts.capabilities);
  if (lack !== undefined) return rest('Failed', { reason: 'SpecInvalid', message: lack });
  if (record !== undefined) {
    const blocked = failedOrWaiting(facts, record, spec);
    if (blocked !== undefined) return blocked;
  }
  if (record === undefined && facts.createBlocked !== undefined) {
    return rest('Pending', { reason: 'RecordUnreadable', message: facts.createBlocked });
  }
  if (!facts.admission.ok) return rest('Pending', { reason: 'Capacity', message: facts.admission.why });
  if (record === undefined) return { do: 'create', spec };
  return record.boots === 0 ? nextCreateStep(record, spec) : nextRestartStep(facts, record, spec);
}

function decideAlive(
  facts: Facts,
  record: VmRecord,
  spec: VmSpec,
  observed: Observation & { readonly pid: number },
): Decision {
  if (record.stop !== undefined) {
    if (!record.stop.cancelled) return { do: 'cancelStop' };
    // In its whole grace the guest did not go for it, and will not any more: what ends it later is something else.
    if (record.stop.elapsedMs >= graceMsOf(record)) return { do: 'forgetStop' };
  }
  if (liveDiffers(record, spec)) return { do: 'applySpec', spec, moment: 'live' };
  if (facts.portsStale && observed.state === 'running') return { do: 'publish' };
  const { policy } = facts;
  if (record.crashes > 0 && record.upMs >= policy.calmAfterMs) return { do: 'calm' };
  if (observed.state === 'paused')
    return rest('Paused', { message: PAUSED[observed.by], wakeMs: policy.resumeRetryMs });
  const change = applyAtBoot(record, spec);
  if (change.refusals.length > 0) {
    return rest(phaseOf(observed), { reason: 'SpecInvalid', message: change.refusals.join('; ') });
  }
  if (change.pending) {
    return rest(phaseOf(observed), { reason: 'RestartRequired', message: 'the change holds from its next boot on' });
  }
  if (record.stop?.cancelled === true) {
    return rest(phaseOf(observed), {
      message: 'it was asked to power off; if it does, it is started again',
      wakeMs: Math.max(0, graceMsOf(record) - record.stop.elapsedMs),
    });
  }
  return rest(phaseOf(observed), {
    ...(record.crashes > 0 ? { wakeMs: policy.calmAfterMs - record.upMs } : {}),
    ...(observed.state === 'starting' && record.upMs < STARTING_MS ? { wakeMs: policy.startingTickMs } : {}),
  });
}

/** So long a VMM that does not answer yet is looked at often; then it is not likely to answer soon. */
const STARTING_MS = 60_000;

/**
 * Whether a VM at rest needs its place among those that come up after a reboot of the host no more: it came up, or waits
 * for something else. One whose VMM does not answer is let come up for a while, as it is busy with its disks, and no longer.
 */
export function isRecovered({ phase, reason }: Rest, record: VmRecord | undefined): boolean {
  if (reason === 'RecoveringAfterReboot') return false;
  return phase !== 'Starting' || (record?.upMs ?? 0) >= STARTING_MS;
}

const PAUSED: Readonly<Record<PausedBy, string>> = {
  fullDisk:
    'it stands still, because the file system under a disk of it is full: free some space there, and it goes on by itself',
  fault: 'its VMM met a fault and can’t run it any further: look into vmm.log, then stop and start it',
  other: 'its guest, or somebody at its VMM, paused it',
};

/** What keeps a VM that should run from being tried now. */
function failedOrWaiting(facts: Facts, record: VmRecord, spec: VmSpec): Decision | undefined {
  const { policy } = facts;
  const { failure } = record;
  if (failure === undefined) return undefined;
  if (failure.specDigest !== specDigest(spec)) return { do: 'clearFailure' };
  if (failure.permanent) return rest('Failed', { reason: failure.code, message: failure.message });
  if (record.boots > 0) return undefined; // a VM that ran once is never given up: its crash backoff governs it
  // Want of room is the host's trouble, not the VM's: it is tried for as long as it lasts.
  if (record.attempts >= policy.maxCreateAttempts && failure.code !== 'Capacity') {
    return rest('Failed', {
      reason: 'AttemptsExhausted',
      message: `gave up after ${record.attempts} attempts: ${failure.message}`,
    });
  }
  const wait = retryWait(policy, record.attempts) - record.waitedMs;
  if (wait <= 0) return undefined;
  return rest('Pending', {
    reason: 'WaitingRetry',
    message: `attempt ${record.attempts} failed: ${failure.message}; next in ${seconds(wait)}`,
    wakeMs: wait,
  });
}

function nextCreateStep(record: VmRecord, spec: VmSpec): Action {
  const { prepared } = record;
  const change = applyAtBoot(record, spec);
  if (specDigest(change.spec) !== specDigest(record.spec))
    return { do: 'applySpec', spec: change.spec, moment: 'boot' };
  if (!record.bootAttempted) {
    if (prepared.image === undefined) return { do: 'fetchImage' };
    if (!prepared.disk) return { do: 'prepareDisk' };
  }
  return bootStep(record, 'first');
}

function nextRestartStep(facts: Facts, record: VmRecord, spec: VmSpec): Decision {
  const blocked = restartBlocked(record, spec, facts.policy);
  if (blocked !== undefined) return blocked;
  const { recovery } = facts;
  if (recovery !== undefined && !recovery.turn) {
    return rest('Pending', {
      reason: 'RecoveringAfterReboot',
      message: `recovering ${recovery.position}/${recovery.total}: it ran when the host went down, and waits for its turn`,
    });
  }
  const change = applyAtBoot(record, spec);
  if (specDigest(change.spec) !== specDigest(record.spec))
    return { do: 'applySpec', spec: change.spec, moment: 'boot' };
  switch (record.lastExit?.cause) {
    case 'hostReboot':
      return bootStep(record, 'hostReboot');
    case 'self':
      return bootStep(record, 'restart');
    case 'stop':
    case undefined:
      return bootStep(record, 'start');
  }
}

/** Restart policy and crash backoff of a VM that ran before. */
function restartBlocked(record: VmRecord, spec: VmSpec, policy: EnginePolicy): Rest | undefined {
  const exit = record.lastExit;
  const how = exit?.code === undefined ? 'in an unknown way' : `with code ${exit.code}`;
  if (exit?.cause === 'self' && (spec.restart === 'never' || (spec.restart === 'on-failure' && exit.code === 0))) {
    return rest('Stopped', { message: `the guest ended ${how}, and its restart policy is ${spec.restart}` });
  }
  const wait = doubling(record.crashes, policy.crashFirstMs, policy.crashMaxMs) - record.waitedMs;
  if (wait <= 0) return undefined;
  const why = record.failure?.message ?? exit?.reason;
  const what = record.failure === undefined ? `the guest ended ${how}` : 'it could not be started';
  return rest('Pending', {
    reason: 'CrashLooping',
    message: `${what}${why === undefined ? '' : `: ${why}`}; started again in ${seconds(wait)}`,
    wakeMs: wait,
  });
}

/** Volumes and seed, where they are missing, then the boot. */
function bootStep(record: VmRecord, cause: 'first' | 'start' | 'restart' | 'hostReboot'): Action {
  const { prepared, spec } = record;
  if (spec.diskGib !== undefined && record.diskGib !== undefined && spec.diskGib > record.diskGib) {
    return { do: 'growDisk', diskGib: spec.diskGib };
  }
  if (volumeKeys(spec).join() !== prepared.volumes.join()) return { do: 'prepareVolumes' };
  if (!prepared.seed) return { do: 'buildSeed' };
  return { do: 'boot', cause };
}

/** A shutdown that was taken back is over: the next one has its whole grace again, however long ago the first began. */
export function stopUnderWay({ stop }: VmRecord): StopState {
  return stop === undefined || stop.cancelled ? { elapsedMs: 0, presses: 0, cancelled: false } : stop;
}

const graceMsOf = (record: VmRecord): number => record.spec.shutdown.graceSeconds * 1_000;

/** The next step of a shutdown that has run for `stop.elapsedMs`. */
function stopping(facts: Facts, record: VmRecord): Decision {
  const { policy, capabilities } = facts;
  const stop = stopUnderWay(record);
  const graceMs = capabilities.powerButton ? graceMsOf(record) : 0;
  const killAtMs = graceMs + policy.killAfterTerminateMs;
  const at = stop.elapsedMs;
  if (at >= killAtMs) return { do: 'shutdown', step: 'kill' };
  if (at >= graceMs) {
    if (stop.step !== 'terminate') return { do: 'shutdown', step: 'terminate' };
    return goingDown(`asked to end; killed in ${seconds(killAtMs - at)}`, killAtMs - at);
  }
  const secondPressMs = graceMs / 3;
  if (stop.presses === 0 || (stop.presses === 1 && at >= secondPressMs)) return { do: 'shutdown', step: 'powerButton' };
  const next = stop.presses === 1 ? secondPressMs : graceMs;
  return goingDown(`power button pressed; terminated in ${seconds(graceMs - at)}`, next - at);

  function goingDown(message: string, dueMs: number): Rest {
    return rest('Stopping', { message, wakeMs: Math.min(dueMs, policy.stoppingTickMs) });
  }
}

/** Wait before the attempt that follows `attempts` failed ones. */
export function retryWait(policy: EnginePolicy, attempts: number): number {
  if (attempts === 0) return 0;
  return policy.createRetryMs[Math.min(attempts, policy.createRetryMs.length) - 1] ?? 0;
}

/** The phase of a VM of which no more is known than what its backend sees. */
export function phaseOf(observed: Observation): VmPhase {
  switch (observed.state) {
    case 'starting':
      return 'Starting';
    case 'running':
      return 'Running';
    case 'paused':
      return 'Paused';
    case 'stopping':
      return 'Stopping';
    case 'absent':
    case 'exited':
      return 'Stopped';
    case 'unknown':
      return 'Unknown';
  }
}

function rest(phase: VmPhase, more: Omit<Rest, 'do' | 'phase'> = {}): Rest {
  return { do: 'rest', phase, ...more };
}

const seconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;
