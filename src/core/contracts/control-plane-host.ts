import type { Capabilities } from './capabilities.js';
import type { ConsoleAttach, ConsoleSession } from './console-session.js';
import type { HostFacts } from './host-facts.js';
import type { ActualState } from './report.js';
import type { VmUid } from './vm-spec.js';

/** How much the operator lets VMs take of this host. 0 in a field: no limit. */
export interface HostCaps {
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly diskGib: number;
}

/** Who this agent is and what it can do: what a control plane is told first in every session. Plain data. */
export interface AgentHello {
  /** The agent's own version, e.g. `0.1.0`. */
  readonly version: string;
  /** The number of the contract between agent and plugins. */
  readonly contract: number;
  /** The pinned backend's name: a label to store and to show. What it can do is said by `capabilities` alone. */
  readonly backend: string;
  readonly capabilities: Capabilities;
  readonly caps: HostCaps;
  /** Named networks that a spec may ask for, sorted. */
  readonly hostNetworks: readonly string[];
  readonly host: HostFacts;
}

/**
 * What a control plane is given of the agent. It stays inside the agent's process, so what is in memory is answered at
 * once.
 *
 * Call order: none; usable from `ControlPlane.run` until that resolves. Concurrency: all members at once.
 */
export interface ControlPlaneHost {
  /** For the begin of each session. The same answer for the agent's life. */
  readonly hello: () => AgentHello;
  /** What is true now, of all VMs. Never a part of it, also while the agent ends. */
  readonly report: () => ActualState;
  /** Calls back (debounced) after the report changed. Returns the unsubscription, which may be called twice. */
  readonly onReport: (listener: () => void) => () => void;
  /**
   * Joins a guest's console, when the control plane asks for it. Not idempotent: each call is a viewer of its own,
   * which its caller ends. Rejects with a sentence for the operator: retryable where the guest is off or too many look,
   * permanent where somebody types already and `force` is unset. Slow viewers are dropped, and cost the guest nothing.
   */
  readonly openConsole: (uid: VmUid, attach: ConsoleAttach) => Promise<ConsoleSession>;
}
