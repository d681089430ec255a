/**
 * Cases about the end of a VM: shutdown, step by step, and destroy.
 */
import type { ShutdownStep } from '@eitri/core/contracts';
import { aborted, calm, check, knob, rejection, same, TIMES } from '../checks.js';
import {
  bootedVm,
  footprint,
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

const STEPS: readonly ShutdownStep[] = ['powerButton', 'terminate', 'kill'];
const GONE = 'Resolves with `gone` when no VMM is left, having stopped the pump.';

export const endCases = [
  provisionerCase(
    'the power button is pressed: the guest goes, and then its pump is stopped',
    GONE,
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      await untilRunning(context, context.provisioner, vm);
      await untilGone(context, context.provisioner, vm, 'powerButton');
      await noVmm(context, vm, 'after it was gone');
      const stop = context.probes.pumpCalls().findLast((c) => c.uid === vm.uid);
      same(stop?.member, 'stop', 'the last that the pump was told');
      same(stop?.vmms, [], 'VMMs that ran when the pump was stopped');
      gone(await context.provisioner.observe(vm, calm()), 'after the guest powered off');
    },
  ),
  provisionerCase(
    'the power button is ignored: asked, ten times, and the guest runs on and keeps its pump',
    '`asked`: delivered, the guest has not gone yet.',
    ['ignoreButton'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      await untilRunning(context, context.provisioner, vm);
      await knob(context, 'ignoreButton')(vm);
      for (let i = 0; i < TIMES; i++) {
        same(await context.provisioner.shutdown(vm, 'powerButton', calm()), 'asked', 'shutdown');
        await context.pass(100);
      }
      same(await onlyVmm(context, vm), pid, 'pid');
      const seen = await context.provisioner.observe(vm, calm());
      check('pid' in seen && seen.pid === pid, `observed ${seen.state} although the guest runs on`);
      check(!pumpStopped(context, vm), 'the pump of a guest that runs on was stopped');
    },
  ),
  provisionerCase(
    'terminate is asked for: the VMM ends, and its pump is stopped',
    '`terminate`: ask the VMM to end.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      await untilGone(context, context.provisioner, vm, 'terminate');
      await noVmm(context, vm, 'after it was gone');
      check(pumpStopped(context, vm), 'its pump was not stopped');
    },
  ),
  provisionerCase(
    'kill is asked for: the VMM ends, and its pump is stopped',
    '`kill`: end it.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      await untilGone(context, context.provisioner, vm, 'kill');
      await noVmm(context, vm, 'after it was gone');
      check(pumpStopped(context, vm), 'its pump was not stopped');
    },
  ),
  provisionerCase(
    'kill is asked for under an aborted signal: it is done all the same',
    'A kill is not skipped because the signal is aborted.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      await context.provisioner.shutdown(vm, 'kill', aborted());
      await untilGone(context, context.provisioner, vm, 'kill');
      await noVmm(context, vm, 'after a kill under an aborted signal');
    },
  ),
  provisionerCase(
    'a kill is refused by the kernel: shutdown rejects, the guest keeps its pump, and a later kill works',
    'Rejects when the step could not be delivered: the guest may run on, and keeps its pump.',
    ['refuseSignals'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      await knob(context, 'refuseSignals')(vm, true);
      await rejection(context.provisioner.shutdown(vm, 'kill', calm()), 'a kill that the kernel refused');
      same(await onlyVmm(context, vm), pid, 'pid');
      check(!pumpStopped(context, vm), 'the pump of a guest that runs on was stopped');
      check(await context.probes.recorded(vm), 'the record of a process that runs on is gone');
      await knob(context, 'refuseSignals')(vm, false);
      await untilGone(context, context.provisioner, vm, 'kill');
      await noVmm(context, vm, 'after the second kill');
    },
  ),
  provisionerCase(
    'a VM that is not running is shut down: gone, ten times, by every step',
    'Resolves with `gone` when no VMM is left … Idempotent.',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      for (const step of STEPS) {
        for (let i = 0; i < TIMES; i++) same(await context.provisioner.shutdown(vm, step, calm()), 'gone', step);
      }
      const { vm: ended } = await bootedVm(context);
      for (let i = 0; i < TIMES; i++) await untilGone(context, context.provisioner, ended, 'kill');
      check(pumpStopped(context, ended), 'its pump was not stopped');
    },
  ),
  provisionerCase(
    'a VM is booted again after a shutdown: another VMM, the same disk, the same address, a pump again',
    '`shutdown` (as often as it takes) → `boot` again',
    [],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      const disk = await context.probes.disk(vm);
      const address = await context.probes.reservation(vm);
      await untilGone(context, context.provisioner, vm, 'terminate');
      await context.provisioner.boot(vm, calm());
      check((await onlyVmm(context, vm)) !== pid, 'the pid is that of the VMM that was ended');
      same((await context.probes.disk(vm))?.file, disk?.file, 'the file of the root disk');
      same(await context.probes.reservation(vm), address, 'the reserved address');
      same(pumpMembers(context, vm).at(-1), 'ensure', 'the last that the pump was told');
    },
  ),
  provisionerCase(
    'a running VM is destroyed: no process, socket, tap, reservation or record is left, and the disk is',
    "Disks and the VM's folder are the engine's. Resolved is a promise: no process, device or port of this life remains.",
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      await context.provisioner.destroy(vm, calm());
      await nothingLeft(context, vm, 'after destroy');
      check(pumpStopped(context, vm), 'its pump was not stopped');
      check((await context.probes.disk(vm)) !== undefined, "the root disk, which is the engine's, is gone");
      same(await context.provisioner.observe(vm, calm()), { state: 'absent' }, 'observe');
      same(await context.provisioner.address(vm, calm()), undefined, 'address');
    },
  ),
  provisionerCase(
    'destroy is called ten times: it resolves, and nothing is left',
    'Idempotent.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      for (let i = 0; i < TIMES; i++) {
        await context.provisioner.destroy(vm, calm());
        await nothingLeft(context, vm, 'after destroy');
      }
    },
  ),
  provisionerCase(
    'destroy under an aborted signal: it is done all the same',
    'Not skipped because the signal is aborted.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      await context.provisioner.destroy(vm, aborted());
      await nothingLeft(context, vm, 'after destroy under an aborted signal');
    },
  ),
  provisionerCase(
    'a crashed VM is destroyed: what its boot made is released all the same',
    'releases everything that `boot` made: process, pump, sockets, taps, reservation, ports',
    ['crash'],
    async (context) => {
      const { vm } = await bootedVm(context);
      await knob(context, 'crash')(vm, 'out of memory');
      await context.provisioner.destroy(vm, calm());
      await nothingLeft(context, vm, 'after destroy of a crashed VM');
      check(pumpStopped(context, vm), 'its pump was not stopped');
    },
  ),
  provisionerCase(
    'a kill is refused by the kernel: destroy rejects, record, tap and reservation stay, and a later destroy works',
    "A kill that the kernel refuses, or a tap that won't go, rejects.",
    ['refuseSignals'],
    async (context) => {
      const { vm } = await bootedVm(context);
      const before = await footprint(context, vm);
      await knob(context, 'refuseSignals')(vm, true);
      await rejection(context.provisioner.destroy(vm, calm()), 'destroy with a kill that the kernel refused');
      const { vmms, taps, reservation, recorded } = await footprint(context, vm);
      const kept = { vmms: before.vmms, taps: before.taps, reservation: before.reservation, recorded: true };
      same({ vmms, taps, reservation, recorded }, kept, 'what stands after it');
      await knob(context, 'refuseSignals')(vm, false);
      await context.provisioner.destroy(vm, calm());
      await nothingLeft(context, vm, 'after the second destroy');
    },
  ),
  provisionerCase(
    "a tap won't go: destroy rejects, and a later destroy works",
    "A kill that the kernel refuses, or a tap that won't go, rejects.",
    ['tapWontGo'],
    async (context) => {
      const { vm } = await bootedVm(context);
      await knob(context, 'tapWontGo')(vm, true);
      await rejection(context.provisioner.destroy(vm, calm()), "destroy with a tap that won't go");
      await knob(context, 'tapWontGo')(vm, false);
      await context.provisioner.destroy(vm, calm());
      await nothingLeft(context, vm, 'after the second destroy');
    },
  ),
] as const;
