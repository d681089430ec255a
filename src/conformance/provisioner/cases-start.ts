/**
 * Cases about everything up to a booted guest: capabilities, preflight, disk, boot.
 */
import type { ShutdownStep } from '@eitri/core/contracts';
import { codeOf, isPermanent, errorLine, stableJson } from '@eitri/core/kit';
import { aborted, calm, check, knob, rejection, same, tells, TIMES } from '../checks.js';
import { sampleCapabilities } from '../samples.js';
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
  untilRunning,
} from './checks.js';

const STEPS: readonly ShutdownStep[] = ['powerButton', 'terminate', 'kill'];

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const typeName = (value: unknown): string => (Array.isArray(value) ? 'array' : typeof value);

function shapeOf(
  value: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
  at: string,
): void {
  for (const [field, example] of Object.entries(wanted)) {
    const given = value[field];
    check(
      typeName(given) === typeName(example),
      `${at}.${field} is ${typeName(given)} instead of ${typeName(example)}`,
    );
    if (isObject(example) && isObject(given)) shapeOf(given, example, `${at}.${field}`);
  }
}

export const startCases = [
  provisionerCase(
    'capabilities are asked again and again: the same answer, with and without a VM',
    "Pure of the VMs; the same answer for the agent's life.",
    [],
    async (context) => {
      const first = await context.provisioner.capabilities(calm());
      await bootedVm(context);
      for (let i = 0; i < TIMES; i++) same(await context.provisioner.capabilities(calm()), first, 'a later answer');
    },
  ),
  provisionerCase(
    'capabilities are asked: every field is there, as plain data',
    'Arguments and results are plain data, so that a backend can run in a process of its own.',
    [],
    async (context) => {
      const answer = await context.provisioner.capabilities(calm());
      const copy: unknown = JSON.parse(JSON.stringify(answer));
      check(isObject(copy), 'capabilities are not an object');
      // A value of each type that the contract names: what is missing or of another type shows in the comparison.
      shapeOf(copy, { ...sampleCapabilities() }, 'capabilities');
      check(['tap', 'user'].includes(answer.guestNetwork), `guestNetwork is ${stableJson(answer.guestNetwork)}`);
      check(answer.backend !== '' && answer.vmmVersion !== '', 'the name or the version is empty');
    },
  ),
  provisionerCase(
    'the host is fit: preflight resolves, ten times',
    'Checks what every VM would need: binary, version, firmware, devices.',
    [],
    async (context) => {
      for (let i = 0; i < TIMES; i++) await context.provisioner.preflight(calm());
    },
  ),
  provisionerCase(
    'what every VM needs is missing: preflight rejects, permanent, with a sentence',
    'Rejects, permanent, with a sentence that says what to install.',
    ['missingVmm'],
    async (context) => {
      await knob(context, 'missingVmm')();
      const error = await rejection((await context.restart()).preflight(calm()), 'preflight');
      check(isPermanent(error), `preflight's error is not permanent: ${errorLine(error)}`);
      check(/\S \S/.test(errorLine(error)), `preflight's error is no sentence: ${errorLine(error)}`);
    },
  ),
  provisionerCase(
    'the root disk is prepared ten times: the same disk each time',
    'Idempotent: a second call makes the same disk again.',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      const first = await context.probes.disk(vm);
      check(first !== undefined, 'no root disk stands at its path');
      for (let i = 1; i < TIMES; i++) {
        await context.provisioner.prepareRootDisk(vm, context.imagePath, calm());
        same((await context.probes.disk(vm))?.content, first.content, 'content of the disk');
      }
    },
  ),
  provisionerCase(
    'a VM that never was: every member answers, and nothing comes of it',
    'All members may be asked for a VM that is not there.',
    [],
    async (context) => {
      const { provisioner } = context;
      const vm = await context.newVm();
      same(await provisioner.observe(vm, calm()), { state: 'absent' }, 'observe');
      same(await provisioner.failureReason(vm, calm()), undefined, 'failureReason');
      same(await provisioner.address(vm, calm()), undefined, 'address');
      same(await provisioner.networkAddress(vm, calm()), undefined, 'networkAddress');
      for (const step of STEPS) same(await provisioner.shutdown(vm, step, calm()), 'gone', `shutdown by ${step}`);
      await provisioner.destroy(vm, calm());
      await nothingLeft(context, vm, 'although it never was');
    },
  ),
  provisionerCase(
    'addresses are asked for before a boot: none is known, and none is reserved by asking',
    'Address of the first NIC, once known. Never allocates.',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      for (let i = 0; i < TIMES; i++) {
        same(await context.provisioner.address(vm, calm()), undefined, 'address');
        same(await context.provisioner.networkAddress(vm, calm()), undefined, 'networkAddress');
      }
      same(await context.probes.reservation(vm), undefined, 'reservation');
    },
  ),
  provisionerCase(
    'addresses are asked for after a boot: the reserved one, and no other',
    'Address of the first NIC, once known.',
    [],
    async (context) => {
      const { vm } = await bootedVm(context);
      const reserved = await context.probes.reservation(vm);
      const told = await context.provisioner.address(vm, calm());
      if (reserved !== undefined || told !== undefined) same(told, reserved, 'address');
    },
  ),
  provisionerCase(
    'boot resolved: one VMM runs and is recorded',
    'Resolved means: a VMM of ours runs and is recorded.',
    [],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      check(await context.probes.recorded(vm), 'no record of the process stands');
      const seen = await untilRunning(context, context.provisioner, vm);
      same(seen, { state: 'running', pid }, 'observe');
    },
  ),
  provisionerCase(
    'boot resolved: the pump of this VM was ensured, after its VMM ran, and no other pump',
    'then the process is started and recorded, then `pumpHooks.ensure` is called',
    [],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      const calls = context.probes.pumpCalls();
      const ensured = calls.filter((c) => c.member === 'ensure');
      check(ensured.length > 0, 'no pump was ensured');
      for (const call of ensured) same(call.uid, vm.uid, 'uid of an ensured pump');
      same(ensured[0]?.vmms, [pid], 'VMMs that ran when the pump was ensured');
      same(calls.at(-1)?.member, 'ensure', 'the last that the pump was told');
    },
  ),
  provisionerCase(
    'boot is called ten times: one VMM, the same pid',
    'Idempotent: if one is alive already, nothing is started.',
    [],
    async (context) => {
      const { vm, pid } = await bootedVm(context);
      for (let i = 1; i < TIMES; i++) {
        await context.provisioner.boot(vm, calm());
        same(await onlyVmm(context, vm), pid, 'pid after another boot');
      }
    },
  ),
  provisionerCase(
    'boot under an aborted signal: it rejects, and nothing was started',
    'The signal bounds the attaching of the network',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      const before = await footprint(context, vm);
      await rejection(context.provisioner.boot(vm, aborted()), 'boot under an aborted signal');
      same(await footprint(context, vm), before, 'what stands after it');
      same(pumpMembers(context, vm), [], 'pump hooks');
    },
  ),
  provisionerCase(
    'boot is aborted half-way: a guest that lives on, or a rejection and no VMM',
    'On rejection no VMM of this call is left.',
    [],
    async (context) => {
      for (const turns of [0, 1, 2, 4, 8]) {
        const vm = await preparedVm(context);
        const abort = new AbortController();
        const boot = context.provisioner.boot(vm, abort.signal).then(
          () => true,
          () => false,
        );
        for (let i = 0; i < turns; i++) await Promise.resolve();
        abort.abort(new Error(`aborted after ${turns.toString()} turns`));
        const booted = await boot;
        if (booted) await onlyVmm(context, vm);
        else await noVmm(context, vm, `after a boot that was aborted after ${turns.toString()} turns and rejected`);
        await context.provisioner.destroy(vm, calm());
      }
    },
  ),
  provisionerCase(
    "boot's signal is aborted when the guest runs: the guest runs on",
    'never the guest: a VMM once started outlives signal and agent',
    [],
    async (context) => {
      const vm = await preparedVm(context);
      const abort = new AbortController();
      await context.provisioner.boot(vm, abort.signal);
      const pid = await onlyVmm(context, vm);
      abort.abort(new Error('the pass is over'));
      await context.pass(1_000);
      same(await onlyVmm(context, vm), pid, 'pid after the abort');
    },
  ),
  provisionerCase(
    'the network fails in boot: its own error with `NetworkFailed`, no VMM, and a later boot works',
    'first the network (its error is shown as its own, with `NetworkFailed`)',
    ['networkFails'],
    async (context) => {
      const vm = await preparedVm(context);
      const networkFails = knob(context, 'networkFails');
      await networkFails(true);
      const error = await rejection(context.provisioner.boot(vm, calm()), 'boot without a network');
      same(codeOf(error), 'NetworkFailed', `code of "${errorLine(error)}"`);
      await noVmm(context, vm, 'after the network failed');
      await networkFails(false);
      await context.provisioner.boot(vm, calm());
      await onlyVmm(context, vm);
    },
  ),
  provisionerCase(
    'sockets of a dead VMM stand in the way: boot works',
    'then stale sockets are removed',
    ['staleSockets'],
    async (context) => {
      const vm = await preparedVm(context);
      await knob(context, 'staleSockets')(vm);
      await context.provisioner.boot(vm, calm());
      await untilRunning(context, context.provisioner, vm);
    },
  ),
  provisionerCase(
    'the VMM dies at once: boot rejects and leaves none, or it is observed gone; the reason is its own',
    'Resolved means: a VMM of ours runs and is recorded. … On rejection no VMM of this call is left.',
    ['vmmDiesAtStart'],
    async (context) => {
      const cause = 'no space left for the guest memory';
      const vm = await preparedVm(context);
      await knob(context, 'vmmDiesAtStart')(vm, cause);
      let error: unknown;
      try {
        await context.provisioner.boot(vm, calm());
      } catch (thrown) {
        error = thrown;
      }
      await noVmm(context, vm, 'although it ended at once');
      gone(await context.provisioner.observe(vm, calm()), 'although the VMM ended at once');
      if (error !== undefined) check(tells(error, cause), `the rejection does not tell the cause: ${errorLine(error)}`);
      const reason = await context.provisioner.failureReason(vm, calm());
      check(reason?.includes(cause) === true, `failureReason is ${stableJson(reason)}, the VMM said "${cause}"`);
    },
  ),
] as const;
