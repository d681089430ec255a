import type { ReasonCode } from './errors.js';
import type { VmId, VmUid } from './vm-spec.js';

/** One thing that happened. `message` is a whole line for people; `type` is for programs. */
export interface AgentEvent {
  /** Counts up within one run of the agent. */
  readonly seq: number;
  /** Milliseconds since 1970. */
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

/** An event as it is told: number and time are the sink's. */
export type NewEvent = Omit<AgentEvent, 'seq' | 'at'>;

/**
 * Where the engine, and the composition root, tell what happens.
 *
 * Call order: none; at any time, by anybody, at once. Events keep the order in which they were told.
 */
export interface EventSink {
  /** Takes an event at once, from whoever tells it. Each call is one event. Never throws, never waits. */
  readonly emit: (event: NewEvent) => void;
}
