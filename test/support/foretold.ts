/**
 * Holds a plan against what follows: the events of each VM, in their order, must be those of its steps.
 *
 * Only where nothing fails, nobody changes their mind, and guests do what they are asked: a plan foresees nothing else.
 */
import type { DesiredLife } from '@eitri/core/contracts';
import type { VmPlan } from '@eitri/core/reconcile';
import type { AnyWorld } from './world.js';

/** What tells of a guest, and of no step. */
const NEWS: ReadonlySet<string> = new Set(['vm.boot', 'vm.running', 'vm.paused', 'vm.resumed', 'vm.port.failed']);

export interface Foretold {
  readonly plans: readonly VmPlan[];
  /** What came otherwise since, one sentence a VM; empty: all came as foreseen. */
  readonly surprises: () => readonly string[];
}

/** What the agent of this world will do from now on; with `lives`, once these are what is wanted. */
export function foretell(world: AnyWorld, lives?: readonly DesiredLife[]): Foretold {
  const { agent } = world;
  if (agent === undefined) throw new Error('there is no agent');
  const plans = agent.engine.plan(lives);
  const seen = agent.events.since(0).at(-1)?.seq ?? 0;
  return {
    plans,
    surprises: () => {
      const events = agent.events.since(seen).filter(({ type, progress }) => progress === undefined && !NEWS.has(type));
      const strangers = events.filter(({ uid }) => uid !== undefined && !plans.some((plan) => plan.uid === uid));
      return [
        ...plans.flatMap(({ uid, id, steps }) => {
          const foreseen = steps.flatMap((step) => step.events).join(' ');
          const happened = events.flatMap((event) => (event.uid === uid ? event.type : [])).join(' ');
          return foreseen === happened ? [] : [`${id}: foreseen "${foreseen}", happened "${happened}"`];
        }),
        ...strangers.map(({ id = '', type }) => `${id}: nothing foreseen, happened "${type}"`),
      ];
    },
  };
}
