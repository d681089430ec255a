/**
 * Waiting for a VM to be what was asked for. A level, not an edge: what was reached while nobody looked counts.
 */
import type { VmSummaryView } from '@eitri/protocol';
import { EXIT, exitError } from '@eitri/core/kit';
import { ClientError, type AdminClient } from '../../client/index.js';

export type Goal = 'running' | 'stopped' | 'deleted';

/** What is said when it is so: `NAME is …`. */
export const REACHED: Readonly<Record<Goal, string>> = {
  running: 'running',
  stopped: 'stopped',
  deleted: 'shut down; its disk is kept until the tombstone grace ends',
};

export type Progress =
  { readonly kind: 'reached' } | { readonly kind: 'going' } | { readonly kind: 'failed'; readonly why: string };

/** `undefined`: there is no such VM (any more). */
export function progressTo(goal: Goal, vm: VmSummaryView | undefined): Progress {
  if (vm === undefined) return { kind: goal === 'deleted' ? 'reached' : 'going' };
  // It is left alone, whatever is wanted of it.
  if (vm.reason === 'RecordUnreadable' || vm.reason === 'BackendMissing') return { kind: 'failed', why: why(vm) };
  // Until the agent has taken over the change, its status speaks of what was wanted before.
  if (vm.wanted !== goal) return { kind: 'going' };
  switch (goal) {
    case 'running':
      if (vm.phase === 'Running') return { kind: 'reached' };
      return vm.phase === 'Failed' ? { kind: 'failed', why: why(vm) } : { kind: 'going' };
    case 'stopped':
      return { kind: vm.pid === undefined && (vm.phase === 'Stopped' || vm.phase === 'Failed') ? 'reached' : 'going' };
    case 'deleted':
      // Shut down; its disk stays until the grace ends.
      return { kind: vm.pid === undefined && vm.phase === 'Shelved' ? 'reached' : 'going' };
  }
}

const why = (vm: VmSummaryView): string =>
  [vm.reason, vm.message].filter((part) => part !== undefined).join(': ') || vm.phase;

const POLL_MS = 200;

export async function waitFor(
  client: Pick<AdminClient, 'vm'>,
  of: {
    readonly name: string;
    /** Which life of that name is meant, where it is known. */
    readonly uid: string | undefined;
    readonly goal: Goal;
    readonly timeoutMs: number;
  },
  signal: AbortSignal,
): Promise<void> {
  const end = performance.now() + of.timeoutMs;
  for (;;) {
    const progress = progressTo(of.goal, await lookAt(client, of.uid ?? of.name, signal));
    if (progress.kind === 'reached') return;
    if (progress.kind === 'failed') {
      throw exitError(EXIT.failed, `${of.name} failed: ${progress.why}: "eitri-agent vm explain ${of.name}" says why`);
    }
    if (performance.now() > end) {
      throw exitError(
        EXIT.tryAgain,
        `${of.name} is not ${of.goal} after ${Math.round(of.timeoutMs / 1000)} s: "eitri-agent vm explain ${of.name}" says what it waits for`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function lookAt(
  client: Pick<AdminClient, 'vm'>,
  id: string,
  signal: AbortSignal,
): Promise<VmSummaryView | undefined> {
  try {
    return await client.vm(id, signal);
  } catch (error) {
    if (error instanceof ClientError && error.kind === 'notFound') return undefined;
    throw error;
  }
}
