/**
 * What the operator API needs of the agent, as it needs it. Whoever composes gives it; nothing here touches a VM.
 */
import type {
  ActualState,
  AgentEvent,
  Capabilities,
  ConsoleAttach,
  ConsoleSession,
  DesiredHolds,
  DesiredIssue,
  DesiredLife,
  DesiredState,
  HostCaps,
  HostFacts,
  ManifestEditor,
  VmPaths,
  VmRecord,
  VmUid,
} from '@eitri/core/contracts';
import type { StepTrouble, VmPlan } from '@eitri/core/reconcile';
import type { AskedManifests } from '@eitri/protocol';

/** What does not change while one agent runs. */
export interface AgentFacts {
  readonly version: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly host: HostFacts;
  readonly stateDir: string;
  readonly runDir: string;
  readonly capabilities: Capabilities;
  /** Who says which VMs should exist: `local folder /etc/eitri`. */
  readonly controlPlane: string;
  /** 0 in a field: unlimited. */
  readonly caps: HostCaps;
}

/** What the agent knows. Every member answers at once, from memory. */
export interface AgentView {
  readonly facts: () => AgentFacts;
  readonly report: () => ActualState;
  readonly record: (uid: VmUid) => VmRecord | undefined;
  /** Where a life's files stand, whether or not it has a record that can be read. */
  readonly pathsOf: (uid: VmUid) => VmPaths;
  readonly desired: () => DesiredState | undefined;
  readonly issues: () => readonly DesiredIssue[];
  readonly inContact: () => boolean;
  /** What will be done from now on; `lives`, where given, stand in the place of what is wanted now. */
  readonly plan: (lives?: readonly DesiredLife[]) => readonly VmPlan[];
  /** What failed last of a VM and has not succeeded since. */
  readonly trouble: (uid: VmUid) => StepTrouble | undefined;
  /** What all VMs hold together. */
  readonly held: () => HostCaps;
  /** Kept events after this number, oldest first. */
  readonly eventsSince: (seq: number) => readonly AgentEvent[];
  /** Calls back at each event. Returns the unsubscription. */
  readonly onEvent: (listener: (event: AgentEvent) => void) => () => void;
}

export interface Consoles {
  /** Throws with a sentence: no console, somebody types already, too many look. */
  readonly attach: (uid: VmUid, attach: ConsoleAttach) => ConsoleSession;
  readonly state: (uid: VmUid) => 'none' | 'connecting' | 'connected';
}

/** What would be wanted if these manifests were applied, or one line for each thing that is wrong with them. */
export type Imagined =
  | { readonly kind: 'lives'; readonly lives: readonly DesiredLife[] }
  | { readonly kind: 'refused'; readonly why: readonly string[] };

/** Manifests that somebody asks about. */
export interface Imagination {
  /** Reads them as if they were applied on top of what is declared. Writes nothing. */
  readonly imagine: (files: AskedManifests['files'], signal: AbortSignal) => Promise<Imagined>;
}

/** The guests' network, as far as an operator acts on it. */
export interface GuestNetworkActs {
  /** A sentence for each thing that was put right. Rejects with what could not be. */
  readonly repair: (signal: AbortSignal) => Promise<readonly string[]>;
}

export interface AdminPorts {
  readonly agent: AgentView;
  /** Where the control plane is somebody else's, every member refuses and says whose word it is. */
  readonly editor: ManifestEditor;
  readonly imagination: Imagination;
  readonly holds: DesiredHolds;
  readonly consoles: Consoles;
  /** Undefined: guests have networks of their own. */
  readonly network: GuestNetworkActs | undefined;
}

export const ADMIN_PORTS = Symbol.for('eitri.admin-ports@1');
