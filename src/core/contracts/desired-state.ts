import type { VmId, VmSpec, VmUid } from './vm-spec.js';

/**
 * One life as its owner wants it. `absence` names the time for which it is missing: a life that was wanted again
 * meanwhile, is missed in another way, or was let go from a hold, has another. A grace that was used up belongs to one
 * absence and counts for no other, whatever was or was not written down between them.
 */
export type DesiredLife =
  | { readonly kind: 'present'; readonly uid: VmUid; readonly id: VmId; readonly spec: VmSpec }
  /** Deleted by its control plane: shut down, kept for the tombstone grace, then destroyed. */
  | {
      readonly kind: 'tombstoned';
      readonly uid: VmUid;
      readonly id: VmId;
      readonly spec: VmSpec;
      readonly absence: string;
    }
  /** Missing from a full snapshot without a tombstone: left as it is, and destroyed only after the vanish grace. */
  | {
      readonly kind: 'vanished';
      readonly uid: VmUid;
      readonly id: VmId;
      readonly spec: VmSpec;
      readonly absence: string;
      readonly held: boolean;
    };

/** What was last accepted, whole. Replaced and never changed in place. */
export interface DesiredState {
  /** The owner's history: a UUID. */
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
  /** Counted from 1. */
  readonly line?: number;
  /** `spec.volumes[0].size` */
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

/**
 * What became of a snapshot. `changed` is false where it said what stood already; `why` is a sentence that names the
 * fence that refused it (another lineage, a lower epoch or revision).
 */
export type AcceptOutcome =
  | { readonly kind: 'accepted'; readonly revision: number; readonly changed: boolean }
  | { readonly kind: 'refused'; readonly why: string };
