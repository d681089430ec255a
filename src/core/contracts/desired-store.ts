/**
 * Who wants which VMs, as far as the agent has accepted it: one lineage, ordered by (epoch, revision), on disk before
 * it is answered for.
 *
 * The engine reads it; control planes write it through the same door.
 */
import type { VmId, VmSpec, VmUid } from './vm-spec.js';

/** One life as its owner wants it. */
export type DesiredLife =
  | { readonly kind: 'present'; readonly uid: VmUid; readonly id: VmId; readonly spec: VmSpec }
  /** Deleted by its control plane: shut down, kept for the tombstone grace, then destroyed. */
  | { readonly kind: 'tombstoned'; readonly uid: VmUid; readonly id: VmId; readonly spec: VmSpec }
  /** Missing from a full snapshot without a tombstone: left as it is, and destroyed only after the vanish grace. */
  | {
      readonly kind: 'vanished';
      readonly uid: VmUid;
      readonly id: VmId;
      readonly spec: VmSpec;
      readonly held: boolean;
    };

export interface DesiredState {
  readonly lineage: string;
  readonly epoch: number;
  readonly revision: number;
  /** Sorted by uid. */
  readonly lives: readonly DesiredLife[];
}

/** Why something that somebody declared is not part of the desired state. Shown, and never read as a deletion. */
export interface DesiredIssue {
  /** Where: a file, or a message. */
  readonly source: string;
  readonly line?: number;
  readonly field?: string;
  readonly message: string;
  /** The VM it concerns, where that can be told. */
  readonly id?: string;
}

/** A VM as a control plane declares it; `uid` is given by a server, and by the agent in local mode. */
export interface DeclaredVm {
  readonly uid?: VmUid;
  readonly spec: VmSpec;
}

/** A whole word of a control plane: what it does not name is missing. */
export interface DesiredSnapshot {
  readonly lineage: string;
  readonly epoch: number;
  /** Counted by a server. Absent in local mode: the store counts the changes that it accepts. */
  readonly revision?: number;
  readonly vms: readonly DeclaredVm[];
  /** Names or lives that were deleted on purpose. */
  readonly tombstones: readonly { readonly id: VmId; readonly uid?: VmUid }[];
  /** Names whose declaration can't be read now: they keep what was last accepted, and are not missing. */
  readonly unreadable: readonly VmId[];
  readonly issues: readonly DesiredIssue[];
}

export type AcceptOutcome =
  | { readonly kind: 'accepted'; readonly revision: number; readonly changed: boolean }
  | { readonly kind: 'refused'; readonly why: string };

export interface DesiredStore {
  /** What was last accepted; undefined before anything ever was. */
  readonly current: () => DesiredState | undefined;
  readonly issues: () => readonly DesiredIssue[];
  /** Whether the control plane is in contact under a full snapshot: only then do graces count. */
  readonly inContact: () => boolean;
  /** Tells the engine that a life is destroyed: its entry goes, and its name may live again. */
  readonly settled: (uid: VmUid) => Promise<void>;
  /** Calls back after each accepted change. Returns the unsubscription. */
  readonly onChange: (listener: () => void) => () => void;
  /** Fences, assigns uids, persists, and tells listeners, in this order. */
  readonly accept: (snapshot: DesiredSnapshot, signal: AbortSignal) => Promise<AcceptOutcome>;
  /** A control plane says that it is (not) in contact, and why not: that stands among the issues until it is again. */
  readonly setContact: (inContact: boolean, why?: DesiredIssue) => void;
}

/** The operator's word on a mass vanishing: a role of the desired store of its own, because no control plane has it. */
export interface DesiredHolds {
  /** Lets go of every held life, so that its grace counts from now on. Resolves with their names, once on disk. */
  readonly releaseHold: (signal: AbortSignal) => Promise<readonly VmId[]>;
}
