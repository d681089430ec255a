import type { PublishState } from './port-publisher.js';
import type { ReasonCode } from './errors.js';
import type { VmId, VmUid } from './vm-spec.js';

/** Where a VM is, in one word. */
export type VmPhase =
  | 'Pending'
  | 'Creating'
  | 'Starting'
  | 'Running'
  | 'Paused'
  | 'Stopping'
  | 'Stopped'
  | 'Failed'
  | 'Shelved'
  | 'Destroying'
  | 'Unknown';

/** One VM as it is told: `wanted` is the declaration's word, `phase` what is. Absent fields are not known yet. */
export interface VmStatus {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly phase: VmPhase;
  readonly wanted: 'running' | 'stopped' | 'deleted' | 'vanished' | 'unknown';
  /** Why it is not what is wanted, for programs. */
  readonly reason?: ReasonCode;
  /** The same for people: one line. */
  readonly message?: string;
  readonly cpus?: number;
  readonly memoryMib?: number;
  readonly diskGib?: number;
  readonly backend?: string;
  readonly pid?: number;
  readonly address?: string;
  readonly networkAddress?: string;
  readonly mac?: string;
  /** Boots in this life. */
  readonly boots: number;
  /** Milliseconds since 1970. */
  readonly startedAt?: number;
  readonly hostKeys: readonly string[];
  readonly ports: readonly PublishState[];
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * What is true, as the agent tells it: to commands, and to its control plane. Complete, and equal facts give equal
 * bytes.
 */
export interface ActualState {
  /** Sorted by id, then uid. */
  readonly vms: readonly VmStatus[];
}
