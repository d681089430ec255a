/**
 * Cases about an agent that restarts over running guests, and about guests beside each other.
 */
import { calm, check, knob, same } from '../checks.js';
import {
  bootedVm,
  gone,
  nothingLeft,
  noVmm,
  onlyVmm,
  preparedVm,
  provisionerCase,
  pumpMembers,
  pumpStopped,
  untilGone,
  untilRunning,
} from './checks.js';

const FIRST_CALL =
  'After a restart of the agent any of `observe`, `boot`, `shutdown`, `destroy` may be the first call for a VM';

export const restartCases = [
  provisionerCase(
    'the agent restarts: it observes the same VMM running, and its address',
    'what a backend remembers it must be able to find out again',
    [],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      const address = await context.provisioner.address(vm, calm());
      const next = await context.restart();
      same(await untilRunning(context, next, vm), { state: 'running', pid }, 'observe');
      same(await next.address(vm, calm()), address, 'address');
    },
  ),
  provisionerCase('the agent restarts and boots first of all: no second VMM', FIRST_CALL, [], async (context) => {
    const { vm, pid } = await bootedVm(context);
    const next = await context.restart();
    await next.boot(vm, calm());
    same(await onlyVmm(context, vm), pid, 'pid');
  }),
  provisionerCase('the agent restarts and shuts down first of all: the VMM ends', FIRST_CALL, [], async (context) => {
    const { vm } = await bootedVm(context);
    const next = await context.restart();
    await untilGone(context, next, vm, 'terminate');
    await noVmm(context, vm, 'after the new agent shut it down');
  }),
  provisionerCase('the agent restarts and destroys first of all: nothing is left', FIRST_CALL, [], async (context) => {
    const { vm } = await bootedVm(context);
    const next = await context.restart();
    await next.destroy(vm, calm());
    await nothingLeft(context, vm, 'after the new agent destroyed it');
    check(pumpStopped(context, vm), 'its pump was not stopped');
  }),
  provisionerCase(
    'the VMM ends while no agent is there: the next one sees it gone, and boots anew',
    FIRST_CALL,
    ['crash'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      await knob(context, 'crash')(vm, 'out of memory');
      const next = await context.restart();
      gone(await next.observe(vm, calm()), 'after it ended unseen');
      await next.boot(vm, calm());
      check((await onlyVmm(context, vm)) !== pid, 'the pid is that of the VMM that ended');
    },
  ),
  provisionerCase(
    'two VMs are booted at once and one is destroyed: the other keeps VMM, network and pump',
    'Calls for several VMs run at once.',
    [],
    async (context) => {
      const [a, b] = [await preparedVm(context), await preparedVm(context)];
      await Promise.all([context.provisioner.boot(a, calm()), context.provisioner.boot(b, calm())]);
      const [pidA, pidB] = [await onlyVmm(context, a), await onlyVmm(context, b)];
      check(pidA !== pidB, 'both VMs have one VMM');
      const [addressA, addressB] = [await context.probes.reservation(a), await context.probes.reservation(b)];
      check(addressA === undefined || addressA !== addressB, `both VMs have the address ${addressA ?? ''}`);
      const taps = await context.probes.taps(b);
      await context.provisioner.destroy(a, calm());
      await nothingLeft(context, a, 'after destroy');
      same(await onlyVmm(context, b), pidB, 'pid of the other');
      same(await context.probes.taps(b), taps, 'taps of the other');
      same(await context.probes.reservation(b), addressB, 'address of the other');
      same(pumpMembers(context, b).at(-1), 'ensure', 'the last that the pump of the other was told');
    },
  ),
] as const;
