/**
 * Cases about what is seen of a VMM: running, silent, untouchable, crashed.
 */
import { stableJson } from '@eitri/core/kit';
import { calm, check, knob, rejection, same, TIMES } from '../checks.js';
import {
  bootedVm,
  footprint,
  gone,
  noVmm,
  onlyVmm,
  preparedVm,
  provisionerCase,
  pumpMembers,
  reach,
  untilRunning,
} from './checks.js';

const CAUSE = 'the disk under the guest is gone';

export const observeCases = [
  provisionerCase(
    'a VM before its first boot is observed: absent, ten times, and nothing comes of it',
    'Never rejects for what it sees … Changes nothing.',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      const before = await footprint(context, vm);
      for (let i = 0; i < TIMES; i++)
        same(await context.provisioner.observe(vm, calm()), { state: 'absent' }, 'observe');
      same(await footprint(context, vm), before, 'what stands after it');
    },
  ),
  provisionerCase(
    'a running VM is observed ten times: the same answer, and nothing changes',
    'Changes nothing.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      const first = await untilRunning(context, context.provisioner, vm);
      const before = { host: await footprint(context, vm), pump: pumpMembers(context, vm) };
      for (let i = 0; i < TIMES; i++) same(await context.provisioner.observe(vm, calm()), first, 'observe');
      same({ host: await footprint(context, vm), pump: pumpMembers(context, vm) }, before, 'what stands after it');
    },
  ),
  provisionerCase(
    'a crashed VM is observed ten times: nothing is cleaned up, nothing is started',
    'Changes nothing.',
    ['crash'],
    async (context) => {
      const { vm } = await bootedVm(context);
      await knob(context, 'crash')(vm, CAUSE);
      const before = { host: await footprint(context, vm), pump: pumpMembers(context, vm) };
      for (let i = 0; i < TIMES; i++) gone(await context.provisioner.observe(vm, calm()), 'after a crash');
      const { taps, reservation } = await footprint(context, vm);
      same({ taps, reservation }, { taps: before.host.taps, reservation: before.host.reservation }, 'its network');
      same(pumpMembers(context, vm), before.pump, 'pump hooks');
      await noVmm(context, vm, 'after a crash that was only looked at');
    },
  ),
  provisionerCase(
    'observe runs beside a boot: it never rejects, and the boot is not disturbed',
    '`observe`, `address`, `networkAddress` and `failureReason`, which may run beside any other',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      const now = { booting: true };
      const boot = context.provisioner.boot(vm, calm()).finally(() => {
        now.booting = false;
      });
      // Bounded: a boot that never ends is not waited for here.
      for (let looks = 0; now.booting && looks < 1_000; looks++) {
        await Promise.all([
          context.provisioner.observe(vm, calm()),
          context.provisioner.address(vm, calm()),
          context.provisioner.networkAddress(vm, calm()),
          context.provisioner.failureReason(vm, calm()),
        ]);
        await context.pass(20);
      }
      await boot;
      await onlyVmm(context, vm);
    },
  ),
  provisionerCase(
    'the VMM lives and does not answer: starting or what it was, never gone, and boot starts no second one',
    'A VMM whose process lives but whose API does not answer is `starting`, not `absent`',
    ['silentApi'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      await knob(context, 'silentApi')(vm);
      const next = await context.restart();
      for (let i = 0; i < 3; i++) {
        const seen = await next.observe(vm, calm());
        same(seen, { state: 'starting', pid }, 'observe by an agent that it never answered');
        // Whether boot waits for an answer in vain is its own affair; that it starts nothing is not.
        await next.boot(vm, calm()).catch(() => undefined);
        same(await onlyVmm(context, vm), pid, 'pid after another boot');
      }
    },
  ),
  provisionerCase(
    'the VMM may not be touched: observed unknown; boot, kill and destroy reject and change nothing',
    "what can't be found out is `unknown`",
    ['untouchable'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      const before = await footprint(context, vm);
      await knob(context, 'untouchable')(vm, true);
      const seen = await context.provisioner.observe(vm, calm());
      check(seen.state === 'unknown' && seen.why !== '', `observed ${stableJson(seen)} where nothing can be told`);
      await rejection(context.provisioner.boot(vm, calm()), 'boot of what can not be told');
      await rejection(context.provisioner.shutdown(vm, 'kill', calm()), 'kill of what can not be told');
      await rejection(context.provisioner.destroy(vm, calm()), 'destroy of what can not be told');
      same(await footprint(context, vm), before, 'what stands after it');
      await knob(context, 'untouchable')(vm, false);
      same(await onlyVmm(context, vm), pid, 'pid after all');
    },
  ),
  provisionerCase(
    'the VMM crashed: observed exited or absent, and the reason is the root cause, not the warning after it',
    "The root cause in the VMM's own words, from its last run … Never a mere warning.",
    ['crash'],
    async (context) => {
      const { vm } = await bootedVm(context);
      await knob(context, 'crash')(vm, CAUSE);
      gone(await context.provisioner.observe(vm, calm()), 'after a crash');
      const reason = await context.provisioner.failureReason(vm, calm());
      check(reason?.includes(CAUSE) === true, `failureReason is ${stableJson(reason)}, the VMM said "${CAUSE}"`);
      check(!/warning/i.test(reason), `failureReason quotes a warning: ${reason}`);
    },
  ),
  provisionerCase(
    'the VMM crashed with nothing but a warning said: no reason is told',
    'undefined when it said none. Never a mere warning.',
    ['crash'],
    async (context) => {
      const { vm } = await bootedVm(context);
      await knob(context, 'crash')(vm, undefined);
      same(await context.provisioner.failureReason(vm, calm()), undefined, 'failureReason');
    },
  ),
  provisionerCase(
    'a VM is booted again after a crash: the reason of the earlier run is not told of this one',
    'from its last run; undefined when it said none',
    ['crash'],
    async (context) => {
      const { vm } = await bootedVm(context);
      await knob(context, 'crash')(vm, CAUSE);
      await context.provisioner.boot(vm, calm());
      const reason = await context.provisioner.failureReason(vm, calm());
      check(
        reason?.includes(CAUSE) !== true,
        `failureReason of a running VM is that of its last crash: ${reason ?? ''}`,
      );
    },
  ),
  provisionerCase(
    'a VM is booted again after a crash: a new VMM, from the same disk',
    '`shutdown` (as often as it takes) → `boot` again or `destroy`',
    ['crash'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      const disk = await context.probes.disk(vm);
      await knob(context, 'crash')(vm, CAUSE);
      await context.provisioner.boot(vm, calm());
      check((await onlyVmm(context, vm)) !== pid, 'the pid is that of the VMM that crashed');
      same((await context.probes.disk(vm))?.file, disk?.file, 'the file of the root disk');
    },
  ),
  provisionerCase(
    'a guest stands still on a full disk: observed paused for it, and resumed once there is room: the same VMM runs',
    'Lets a guest go on that its VMM paused for want of room below a disk; the write is tried again, and what finds no room pauses it again.',
    ['fullDisk'],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      await untilRunning(context, context.provisioner, vm);
      await knob(context, 'fullDisk')(vm, true);
      const still = { state: 'paused', pid, by: 'fullDisk' };
      const observed = async (): Promise<string> => stableJson(await context.provisioner.observe(vm, calm()));
      await reach(context, async () => (await observed()) === stableJson(still), 'paused for want of room');
      const next = await context.restart();
      same(await next.observe(vm, calm()), still, 'observe by an agent that started meanwhile');
      await next.resume(vm, calm());
      await reach(
        context,
        async () => stableJson(await next.observe(vm, calm())) === stableJson(still),
        'paused again',
      );
      await knob(context, 'fullDisk')(vm, false);
      await next.resume(vm, calm());
      await untilRunning(context, next, vm);
      same(await onlyVmm(context, vm), pid, 'pid after it was resumed');
    },
  ),
  provisionerCase(
    'resume of a VM that runs, that is gone, or that never was: ten times, and nothing comes of it',
    'a guest that runs, that is gone, or that was paused otherwise is left as it is. Idempotent.',
    [],
    async (context) => {
      const never = await context.newVm();
      for (let i = 0; i < TIMES; i++) await context.provisioner.resume(never, calm());
      await noVmm(context, never, 'after a resume of what never was');
      const { vm } = await bootedVm(context);
      const running = await untilRunning(context, context.provisioner, vm);
      const before = { host: await footprint(context, vm), pump: pumpMembers(context, vm) };
      for (let i = 0; i < TIMES; i++) await context.provisioner.resume(vm, calm());
      same(await context.provisioner.observe(vm, calm()), running, 'observe');
      same({ host: await footprint(context, vm), pump: pumpMembers(context, vm) }, before, 'what stands after it');
      await context.provisioner.shutdown(vm, 'kill', calm());
      for (let i = 0; i < TIMES; i++) await context.provisioner.resume(vm, calm());
      await noVmm(context, vm, 'after a resume of what is gone');
    },
  ),
] as const;
