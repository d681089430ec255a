/**
 * What the provisioner's cases are written with: steps that most share, and checks that know a VM.
 */
import type { Observation, Provisioner, ShutdownStep, VmInstance } from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import { calm, caseMaker, check, same, type FaultCase } from '../checks.js';
import type { FaultName, ProvisionerContext } from './context.js';

/** A case of the provisioner's suite, and the knobs that it turns. */
export type ProvisionerCase<Name extends string = string> = FaultCase<ProvisionerContext, FaultName, Name>;

export const provisionerCase = caseMaker<ProvisionerContext, FaultName>();

const POLL_MS = 100;

/** Waits until a level holds, in the time of the context. */
export async function reach(context: ProvisionerContext, level: () => Promise<boolean>, what: string): Promise<void> {
  const limit = context.patienceMs ?? 60_000;
  for (let waited = 0; !(await level()); waited += POLL_MS) {
    check(waited < limit, `not reached within ${limit.toString()} ms: ${what}`);
    await context.pass(POLL_MS);
  }
}

/** A VM with its root disk, never booted. */
export async function preparedVm(context: ProvisionerContext): Promise<VmInstance> {
  const vm = await context.newVm();
  await context.provisioner.prepareRootDisk(vm, context.imagePath, calm());
  return vm;
}

/** A VM that was booted, and its VMM's pid, as the host sees it. */
export async function bootedVm(
  context: ProvisionerContext,
): Promise<{ readonly vm: VmInstance; readonly pid: number }> {
  const vm = await preparedVm(context);
  await context.provisioner.boot(vm, calm());
  return { vm, pid: await onlyVmm(context, vm) };
}

/** The pid of the one VMM that the host runs for this VM. */
export async function onlyVmm(context: ProvisionerContext, vm: VmInstance): Promise<number> {
  const pids = await context.probes.vmms(vm);
  const [pid] = pids;
  check(
    pid !== undefined && pids.length === 1,
    `${pids.length.toString()} VMMs run for ${vm.spec.id} where one should`,
  );
  return pid;
}

export async function noVmm(context: ProvisionerContext, vm: VmInstance, when: string): Promise<void> {
  same(await context.probes.vmms(vm), [], `pids of VMMs of ${vm.spec.id} ${when}`);
}

/** Observes until the VMM answers. */
export async function untilRunning(
  context: ProvisionerContext,
  provisioner: Provisioner,
  vm: VmInstance,
): Promise<Observation> {
  let seen: Observation = { state: 'absent' };
  await reach(
    context,
    async () => {
      seen = await provisioner.observe(vm, calm());
      check(
        seen.state === 'starting' || seen.state === 'running',
        `a VMM that was booted is observed ${stableJson(seen)}`,
      );
      return seen.state === 'running';
    },
    `${vm.spec.id} is observed running`,
  );
  return seen;
}

/** Asks for one step, again and again, until the VMM is gone. */
export async function untilGone(
  context: ProvisionerContext,
  provisioner: Provisioner,
  vm: VmInstance,
  step: ShutdownStep,
): Promise<void> {
  await reach(
    context,
    async () => (await provisioner.shutdown(vm, step, calm())) === 'gone',
    `${step} ends ${vm.spec.id}`,
  );
}

/** Pump hooks called for this VM, in order. */
export const pumpMembers = (context: ProvisionerContext, vm: VmInstance): readonly string[] =>
  context.probes
    .pumpCalls()
    .filter((c) => c.uid === vm.uid)
    .map((c) => c.member);

/** Whether the guest's pump was stopped by the last hook called for it. */
export const pumpStopped = (context: ProvisionerContext, vm: VmInstance): boolean =>
  pumpMembers(context, vm).at(-1) === 'stop';

/** All that `boot` makes on the host for one VM. */
export async function footprint(context: ProvisionerContext, vm: VmInstance) {
  const { probes } = context;
  return {
    vmms: await probes.vmms(vm),
    taps: await probes.taps(vm),
    reservation: await probes.reservation(vm),
    sockets: [...(await probes.sockets(vm))].sort(),
    recorded: await probes.recorded(vm),
  };
}

/** Nothing is left of a VM but its disk. */
export async function nothingLeft(context: ProvisionerContext, vm: VmInstance, when: string): Promise<void> {
  const left = await footprint(context, vm);
  same(
    left,
    { vmms: [], taps: [], reservation: undefined, sockets: [], recorded: false },
    `what is left of ${vm.spec.id} ${when}`,
  );
}

export function gone(seen: Observation, when: string): void {
  check(seen.state === 'absent' || seen.state === 'exited', `observed ${stableJson(seen)} ${when}`);
}
