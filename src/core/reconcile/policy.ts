/**
 * The engine's numbers. Defaults are the documented ones; tests and flags override single fields.
 */

/** The engine's numbers; flags and tests override single fields. */
export interface EnginePolicy {
  /** How often each VM is looked at when nothing happens. */
  readonly tickMs: number;
  /** How often a VM that only its backend can bring news of is gone over in full: a safety net. */
  readonly slowLookMs: number;
  /** How often while a guest is asked to go down. */
  readonly stoppingTickMs: number;
  /** How often while a VMM that was started does not answer yet, for its first minute. */
  readonly startingTickMs: number;
  /** How long a deleted VM is kept, shut down, before it is destroyed. */
  readonly tombstoneGraceMs: number;
  /** How long a VM that vanished is left alone before it is destroyed; 0: for ever. */
  readonly vanishGraceMs: number;
  /** Bound on one pass over one VM; 0: none. */
  readonly vmTimeoutMs: number;
  /** How long a pass may ignore its abort before it is reported as stuck. */
  readonly stuckAfterMs: number;
  readonly maxCreateAttempts: number;
  /** Wait before the second, third, … attempt; the last one stands for all later ones. */
  readonly createRetryMs: readonly number[];
  /** How many VMs may be in the disk-heavy part of a create; 0: any number. */
  readonly maxConcurrentCreates: number;
  /** How many guests may be started at once; 0: any number. */
  readonly maxConcurrentBoots: number;
  readonly crashFirstMs: number;
  readonly crashMaxMs: number;
  /** Up for so long, earlier crashes are forgotten. */
  readonly calmAfterMs: number;
  /** Between the end of the shutdown grace (SIGTERM) and SIGKILL. */
  readonly killAfterTerminateMs: number;
  /** How often a port that was busy is tried again. */
  readonly portRetryMs: number;
  /** How often a guest that stands still on a full disk is let try again. */
  readonly resumeRetryMs: number;
  /** How often running-up counters reach the disk when nothing else is written. */
  readonly persistTimersMs: number;
  /** What this host offers; 0: unlimited. */
  readonly maxVcpus: number;
  readonly maxMemoryMib: number;
  readonly maxDiskGib: number;
  /** What of the host's memory is left to the host itself; 0: nothing is kept back. */
  readonly memoryReserveMib: number;
}

/** The documented defaults. */
export const DEFAULT_POLICY: EnginePolicy = {
  tickMs: 5_000,
  slowLookMs: 5 * 60_000,
  stoppingTickMs: 1_000,
  startingTickMs: 1_000,
  tombstoneGraceMs: 5 * 60_000,
  vanishGraceMs: 60 * 60_000,
  vmTimeoutMs: 15 * 60_000,
  stuckAfterMs: 30_000,
  maxCreateAttempts: 3,
  createRetryMs: [5_000, 30_000],
  maxConcurrentCreates: 4,
  maxConcurrentBoots: 4,
  crashFirstMs: 10_000,
  crashMaxMs: 5 * 60_000,
  calmAfterMs: 10 * 60_000,
  killAfterTerminateMs: 10_000,
  portRetryMs: 15_000,
  resumeRetryMs: 15_000,
  persistTimersMs: 30_000,
  maxVcpus: 0,
  maxMemoryMib: 0,
  maxDiskGib: 0,
  memoryReserveMib: 0,
};
