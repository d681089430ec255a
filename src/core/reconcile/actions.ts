/**
 * What the engine can do to one VM, one step at a time. The union and the executor's table derive from this one map, so
 * a step without an executor does not compile.
 */
import type { ReasonCode, ShutdownStep, VmPhase, VmSpec } from '../contracts/index.js';

/** Each step by its name, with what it needs to know. A step without an executor does not compile. */
export interface ActionMap {
  /** Write the first record: from here on the VM exists. */
  readonly create: { readonly spec: VmSpec };
  readonly fetchImage: object;
  readonly prepareDisk: object;
  readonly growDisk: { readonly diskGib: number };
  readonly prepareVolumes: object;
  readonly buildSeed: object;
  /** `cause` tells a first boot from a restart and from the recovery after a host reboot. */
  readonly boot: { readonly cause: 'first' | 'start' | 'restart' | 'hostReboot' };
  /** A VMM runs that the record does not know of: the agent died between the start and the record. */
  readonly adopt: object;
  /** The VMM is gone: write down why, stop its console. */
  readonly noteExit: {
    readonly cause: 'self' | 'stop' | 'hostReboot';
    readonly code?: number;
    readonly signal?: string;
  };
  readonly shutdown: { readonly step: ShutdownStep };
  /** Wanted running again while it still goes down. */
  readonly cancelStop: object;
  /** The guest did not go for a shutdown that was taken back. */
  readonly forgetStop: object;
  /** Make the record's spec the declared one: `live` for what holds at once, `boot` for what the next boot uses. */
  readonly applySpec: { readonly spec: VmSpec; readonly moment: 'live' | 'boot' };
  /** Up long enough: earlier crashes are forgotten. */
  readonly calm: object;
  readonly publish: object;
  /** Its VMM paused it on a full disk: try whether there is room by now. */
  readonly resume: object;
  /** The declaration changed: what failed before is tried again. */
  readonly clearFailure: object;
  readonly destroy: object;
  /** Nothing is left of a life that nobody wants: tell the desired store. */
  readonly settle: object;
}

/** The name of a step. */
export type ActionName = keyof ActionMap;

/** A step to carry out now. */
export type Action = { readonly [N in ActionName]: { readonly do: N } & ActionMap[N] }[ActionName];

/** Steps whose failure counts as a failed attempt to bring the VM up. */
export const ATTEMPTS: ReadonlySet<ActionName> = new Set([
  'create',
  'fetchImage',
  'prepareDisk',
  'growDisk',
  'prepareVolumes',
  'buildSeed',
  'boot',
]);

/** Whether it asks for what was just found free: also a record that takes another spec stands for it from then on. */
export const takes = (action: Action): boolean =>
  ATTEMPTS.has(action.do) || (action.do === 'applySpec' && action.moment === 'boot');

/** A step that failed, with its error chain, the outermost first. */
export interface StepTrouble {
  readonly step: ActionName;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly code?: ReasonCode;
  readonly causes: readonly string[];
  readonly permanent: boolean;
}

/** Nothing to do now; how the VM stands, and when to look again at the latest. */
export interface Rest {
  readonly do: 'rest';
  readonly phase: VmPhase;
  readonly reason?: ReasonCode;
  readonly message?: string;
  /** Absent: at the next tick or event. */
  readonly wakeMs?: number;
}

/** What is to be done for a VM: one step, or nothing for now. */
export type Decision = Action | Rest;

/** The phase of a VM while it is carried out; undefined: it stays in the one that it is in. */
export function phaseWhile(action: Action): VmPhase | undefined {
  switch (action.do) {
    case 'create':
    case 'fetchImage':
    case 'prepareDisk':
    case 'growDisk':
    case 'prepareVolumes':
    case 'buildSeed':
      return 'Creating';
    case 'boot':
      return 'Starting';
    case 'shutdown':
      return 'Stopping';
    case 'destroy':
      return 'Destroying';
    case 'adopt':
    case 'noteExit':
    case 'cancelStop':
    case 'forgetStop':
    case 'applySpec':
    case 'calm':
    case 'publish':
    case 'resume':
    case 'clearFailure':
    case 'settle':
      return undefined;
  }
}
