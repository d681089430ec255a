import type { ReasonCode } from './errors.js';
import type { ImageDigest, VmId, VmSpec, VmUid } from './vm-spec.js';
import type { ShutdownStep } from './provisioner.js';
import type { VmPaths } from './vm-paths.js';

/** Steps with a side effect; each is announced in the record, on disk, before it starts. */
export type IntentStep =
  'fetchImage' | 'prepareDisk' | 'prepareVolumes' | 'buildSeed' | 'boot' | 'shutdown' | 'destroy';

/**
 * What was about to be done, on disk before it was: after a crash it tells what may be half done. `at` is for people.
 */
export interface Intent {
  readonly step: IntentStep;
  readonly at: number;
  readonly bootId: string;
}

/** What stands already of the things a boot needs. */
export interface Prepared {
  /** Digest of the image that the root disk was, or will be, made from. */
  readonly image?: ImageDigest;
  /** Size of that image: the disk's least size, and its size where the spec names none. */
  readonly imageBytes?: number;
  readonly disk: boolean;
  readonly volumes: readonly string[];
  readonly seed: boolean;
}

/** The last failed attempt, shown until another succeeds or the spec changes. */
export interface Failure {
  readonly code: ReasonCode;
  /** The error chain as one line. */
  readonly message: string;
  readonly permanent: boolean;
  readonly at: number;
  /** Which spec it was: another one starts afresh. */
  readonly specDigest: string;
}

/** A shutdown under way, or done. `elapsedMs` counts while the agent runs. */
export interface StopState {
  readonly elapsedMs: number;
  readonly step?: ShutdownStep;
  /** How often the button was pressed. */
  readonly presses: number;
  /** Wanted running again meanwhile: when it goes, it is booted again and no crash is counted. */
  readonly cancelled: boolean;
}

/** Why a VMM is not there any more: the guest or the VMM ended, we asked for it, or the host went down under it. */
export type ExitCause = 'self' | 'stop' | 'hostReboot';

/** How its VMM ended the last time. `code` and `signal` are absent where nobody was there to learn them. */
export interface ExitState {
  readonly at: number;
  readonly cause: ExitCause;
  readonly code?: number;
  readonly signal?: string;
  /** The root cause in the VMM's own words, where it failed. */
  readonly reason?: string;
}

/** A grace as far as it is used up: that of the absence of this name (`DesiredLife`), and of no other. */
export interface Shelved {
  readonly absence: string;
  readonly ms: number;
}

/**
 * What the agent remembers of one life of a VM: facts that can't be found out again, and intents.
 *
 * Times that rules depend on are durations, counted up while the agent runs (`…Ms`); wall-clock stamps (`…At`) are for
 * people. A clock that jumps, or an agent that was down, therefore never makes a grace end early.
 */
export interface VmRecord {
  readonly version: 2;
  readonly uid: VmUid;
  readonly id: VmId;
  readonly createdAt: number;
  /** The backend that made it; no other ever acts on it. */
  readonly backend: string;
  /** The spec that its resources were made for: what runs now. */
  readonly spec: VmSpec;
  readonly paths: VmPaths;
  readonly mac: string;
  readonly namedMac: string;
  /** Its reserved address, once it has one. */
  readonly address?: string;
  readonly networkAddress?: string;
  /** Public SSH host keys. */
  readonly hostKeys: readonly string[];
  readonly volumePaths: readonly string[];
  readonly prepared: Prepared;
  /** Size of the root disk as it stands, in whole GiB. */
  readonly diskGib?: number;
  /** Set before the first boot, never taken back: from then on its disk is never replaced. */
  readonly bootAttempted: boolean;
  /** The host boot in which its VMM runs, as far as is known; absent: none runs, and `lastExit` says why. */
  readonly bootId?: string;
  readonly boots: number;
  readonly startedAt?: number;
  /** How long it has been up in this boot of the guest's VMM, as far as the agent watched. */
  readonly upMs: number;
  readonly intent?: Intent;
  /** Attempts to create or boot since the last success or change. */
  readonly attempts: number;
  /** Time waited since the last failed attempt or exit. */
  readonly waitedMs: number;
  readonly failure?: Failure;
  readonly stop?: StopState;
  readonly lastExit?: ExitState;
  /** Exits that count for the crash-loop backoff. */
  readonly crashes: number;
  /** How long it was missed, in contact with its control plane; absent: not missed, as far as was written down. */
  readonly shelved?: Shelved;
  /** Set when destroying has begun: there is no way back. */
  readonly destroying: boolean;
}

/** A record as it was found. One that can't be read blocks its own VM, and no other. */
export type LoadedRecord =
  | { readonly kind: 'record'; readonly record: VmRecord }
  | { readonly kind: 'unreadable'; readonly uid: string; readonly path: string; readonly why: string };
