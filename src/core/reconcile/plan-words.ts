/**
 * A planned step in words, and in the types of the events that will tell of it. Pure. `test/unit/core/reconcile/plan.test.ts`
 * holds the events against the engine's own.
 */
import type { VmRecord } from '../contracts/index.js';
import { formatDuration } from '../kit/index.js';
import type { Action, ActionMap } from './actions.js';
import { stopUnderWay } from './decide.js';
import type { Facts } from './decide.js';

/** What is done: `press its power button`. */
export function whatOf(action: Action, { record }: Facts): string {
  switch (action.do) {
    case 'create':
      return `make it: ${action.spec.cpus} vCPU, ${action.spec.memoryMib} MiB`;
    case 'fetchImage':
      return record?.spec.diskGib === undefined
        ? "get its image, whose size will be its disk's"
        : 'get its image, unless it is here already';
    case 'prepareDisk':
      return record?.spec.diskGib === undefined
        ? 'make its root disk'
        : `make its root disk, ${record.spec.diskGib} GiB`;
    case 'growDisk':
      return `grow its root disk to ${action.diskGib} GiB`;
    case 'prepareVolumes':
      return `make its volumes ready: ${listed(record?.spec.volumes.map(({ name }) => name))}`;
    case 'buildSeed':
      return 'write its cloud-init seed';
    case 'boot':
      return action.cause === 'first' ? 'start it for the first time' : 'start it';
    case 'adopt':
      return 'take over the VMM that runs for it';
    case 'noteExit':
      return NOTED[action.cause];
    case 'shutdown':
      return SHUTDOWN[action.step];
    case 'cancelStop':
      return 'let it run on';
    case 'forgetStop':
      return 'forget that it was asked to power off';
    case 'applySpec':
      return action.moment === 'live' ? 'take over what changed of it' : 'take over its declaration for the next start';
    case 'calm':
      return 'forget its earlier crashes';
    case 'publish':
      return `publish its ports: ${listed(record?.spec.exposures.map(({ hostPort }) => hostPort))}`;
    case 'resume':
      return 'let it try to go on';
    case 'clearFailure':
      return 'forget that it failed';
    case 'destroy':
      return 'destroy it with its root disk; volumes are kept';
    case 'settle':
      return 'forget its name';
  }
}

const listed = (names: readonly (string | number)[] = []): string =>
  names.length === 0 ? 'none any more' : names.join(', ');

const NOTED: Readonly<Record<ActionMap['noteExit']['cause'], string>> = {
  stop: 'let go of what a running guest holds',
  self: 'write down that it ended',
  hostReboot: 'write down that it ended with its host',
};

const SHUTDOWN: Readonly<Record<ActionMap['shutdown']['step'], string>> = {
  powerButton: 'press its power button',
  terminate: 'ask its VMM to end',
  kill: 'kill its VMM',
};

/** Why it is done: `it is declared stopped`. */
export function whyOf(action: Action, facts: Facts): string {
  const { record } = facts;
  switch (action.do) {
    case 'create':
      return `${wish(facts)}, and is not there yet`;
    case 'fetchImage':
    case 'prepareDisk':
    case 'prepareVolumes':
    case 'buildSeed':
      return record?.boots === 0 ? 'its first start needs it' : 'its next start needs it';
    case 'growDisk':
      return `its declaration says so, and it has ${record?.diskGib ?? 0} GiB`;
    case 'boot':
      return bootReason(action.cause, facts);
    case 'adopt':
      return 'an agent started it and ended before it could write that down';
    case 'noteExit':
      return action.cause === 'stop' ? 'it is off' : 'its VMM is gone';
    case 'shutdown':
      return record === undefined ? wish(facts) : `${wish(facts)}${deadlines(facts, record, action.step)}`;
    case 'cancelStop':
      return `${wish(facts)} again while it goes down`;
    case 'forgetStop':
      return 'it did not go in its whole grace';
    case 'applySpec':
      return 'its declaration changed';
    case 'calm':
      return `it is up for ${formatDuration(facts.policy.calmAfterMs)}`;
    case 'publish':
      return 'what is published may differ from its declaration';
    case 'resume':
      return 'it stands still on a full disk, and there may be room again';
    case 'clearFailure':
      return facts.wanted?.spec.power === 'stopped' ? wish(facts) : 'its declaration changed since';
    case 'destroy':
      return record?.destroying === true
        ? 'it was begun, and there is no way back'
        : `${wish(facts)}, and its grace is over`;
    case 'settle':
      return `${wish(facts)}, and was never made`;
  }
}

function wish({ wanted }: Facts): string {
  switch (wanted?.kind) {
    case undefined:
      return 'nobody names it';
    case 'present':
      return `it is declared ${wanted.spec.power}`;
    case 'tombstoned':
      return 'it was deleted';
    case 'vanished':
      return 'its declaration vanished';
  }
}

function bootReason(cause: ActionMap['boot']['cause'], facts: Facts): string {
  const { record, wanted } = facts;
  switch (cause) {
    case 'first':
    case 'start':
      return wish(facts);
    case 'restart': {
      const code = record?.lastExit?.code;
      const how = code === undefined ? '' : ` with code ${code}`;
      return `its guest ended by itself${how}, and its restart policy is ${wanted?.spec.restart ?? 'always'}`;
    }
    case 'hostReboot':
      return 'it ran when the host went down';
  }
}

/** What follows when it does not go down by itself. */
function deadlines({ capabilities, policy }: Facts, record: VmRecord, step: ActionMap['shutdown']['step']): string {
  const { elapsedMs } = stopUnderWay(record);
  const graceMs = capabilities.powerButton ? record.spec.shutdown.graceSeconds * 1_000 : 0;
  const left = (ms: number): string => formatDuration(Math.max(0, Math.ceil((ms - elapsedMs) / 1_000)) * 1_000);
  const kill = `killed in ${left(graceMs + policy.killAfterTerminateMs)}`;
  switch (step) {
    case 'powerButton':
      return `; if it does not power off: asked to end in ${left(graceMs)}, ${kill}`;
    case 'terminate':
      return `; if it does not end: ${kill}`;
    case 'kill':
      return '; it did not end in time';
  }
}

/** Types of the events that tell of a step that succeeds, in their order. */
export function eventsOf(action: Action, { record }: Facts): readonly string[] {
  switch (action.do) {
    case 'create':
      return ['vm.accepted'];
    case 'fetchImage':
      return ['image.ready'];
    case 'prepareDisk':
      return ['disk.ready'];
    case 'growDisk':
      return ['disk.grown'];
    case 'buildSeed':
      return ['seed.ready'];
    case 'boot':
      return ['vm.booting', 'vm.booted'];
    case 'adopt':
      return ['vm.adopted'];
    case 'noteExit':
      return [{ stop: 'vm.stopped', self: 'vm.exited', hostReboot: 'vm.lost' }[action.cause]];
    case 'shutdown':
      return ['vm.stopping'];
    case 'cancelStop':
      return ['vm.stop.cancelled'];
    case 'applySpec':
      return action.moment === 'live' ? [] : ['vm.spec.applied'];
    case 'destroy':
      return record?.destroying === true ? ['vm.destroyed'] : ['vm.destroying', 'vm.destroyed'];
    case 'prepareVolumes':
    case 'forgetStop':
    case 'calm':
    case 'publish':
    case 'resume':
    case 'clearFailure':
    case 'settle':
      return [];
  }
}
