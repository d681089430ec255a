/**
 * What is true, as the agent tells it: to commands, and to its control plane. Sorted, complete, byte-stable.
 */
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

export interface VmStatus {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly phase: VmPhase;
  readonly wanted: 'running' | 'stopped' | 'deleted' | 'vanished' | 'unknown';
  readonly reason?: ReasonCode;
  readonly message?: string;
  readonly cpus?: number;
  readonly memoryMib?: number;
  readonly diskGib?: number;
  readonly backend?: string;
  readonly pid?: number;
  readonly address?: string;
  readonly networkAddress?: string;
  readonly mac?: string;
  readonly boots: number;
  readonly startedAt?: number;
  readonly hostKeys: readonly string[];
  readonly ports: readonly PublishState[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface ActualState {
  /** Sorted by id, then uid. */
  readonly vms: readonly VmStatus[];
}

/** One thing that happened. `message` is a whole line for people; `type` is for programs. */
export interface AgentEvent {
  readonly seq: number;
  readonly at: number;
  /** e.g. `vm.booted`, `vm.exited`, `image.progress`. */
  readonly type: string;
  readonly level: 'info' | 'warn' | 'error';
  readonly uid?: VmUid;
  readonly id?: VmId;
  readonly message: string;
  readonly reason?: ReasonCode;
  /** 0..1 where the event tells of progress. */
  readonly progress?: number;
}

export type NewEvent = Omit<AgentEvent, 'seq' | 'at'>;

/** Where the engine tells what happens. Never throws, never waits. */
export interface EventSink {
  readonly emit: (event: NewEvent) => void;
}
