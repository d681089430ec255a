/**
 * What the engine works with: contracts only, all injected.
 */
import type {
  Clock,
  DesiredStore,
  DiskService,
  EventSink,
  HostFacts,
  ImageSource,
  Logger,
  Platform,
  SeedSource,
  StateStore,
} from '../contracts/index.js';
import type { Semaphore } from '../kit/index.js';
import type { AdmissionLedger } from './admission-ledger.js';
import type { EnginePolicy } from './policy.js';
import type { RecoveryLine } from './recovery.js';

/** What the engine hands to its workers: contracts, its own numbers, and what all VMs share. */
export interface EnginePorts {
  readonly platform: Platform;
  readonly state: StateStore;
  readonly desired: DesiredStore;
  readonly images: ImageSource;
  readonly disks: DiskService;
  readonly seeds: SeedSource;
  readonly clock: Clock;
  readonly host: HostFacts;
  readonly events: EventSink;
  readonly log: Logger;
  readonly policy: EnginePolicy;
  readonly ledger: AdmissionLedger;
  /** Bounds the disk-heavy part of creates over all VMs. */
  readonly createGate: Semaphore;
  readonly bootGate: Semaphore;
  /** Who comes up after a reboot of the host, and when. */
  readonly recovery: RecoveryLine;
}
