/**
 * Pump hooks that only remember. A pump is a part of the agent: make new ones for each life of an agent.
 */
import type { PumpHooks, VmUid } from '@eitri/core/contracts';
import { CallLog } from './call-log.js';

/** One call of a hook, and which VMMs of the guest were alive when it came. */
export interface PumpCall {
  readonly member: 'ensure' | 'stop';
  readonly uid: VmUid;
  readonly vmms: readonly number[];
}

/** What a `FakePumpHooks` is joined to. */
export interface FakePumpHooksOptions {
  readonly calls?: CallLog;
  /** Pids of the guest's VMMs now, seen from outside the backend. Default: none is known. */
  readonly vmmsOf?: (uid: VmUid) => readonly number[] | Promise<readonly number[]>;
  /** Where calls are remembered, so that several lives of an agent share one list. */
  readonly told?: PumpCall[];
}

/** `PumpHooks` that only remember which guests have a pump. */
export class FakePumpHooks implements PumpHooks {
  readonly calls: CallLog;
  /** Every call, oldest first. */
  readonly told: PumpCall[];
  private readonly pumps = new Set<VmUid>();

  constructor(private readonly options: FakePumpHooksOptions = {}) {
    this.calls = options.calls ?? new CallLog();
    this.told = options.told ?? [];
  }

  /** The guests that have a pump now. */
  running(): readonly VmUid[] {
    return [...this.pumps].sort();
  }

  readonly ensure = (uid: VmUid): Promise<void> =>
    this.calls.around('pumpHooks.ensure', uid, async () => {
      this.told.push({ member: 'ensure', uid, vmms: (await this.options.vmmsOf?.(uid)) ?? [] });
      this.pumps.add(uid);
    });

  readonly stop = (uid: VmUid): Promise<void> =>
    this.calls.around('pumpHooks.stop', uid, async () => {
      this.told.push({ member: 'stop', uid, vmms: (await this.options.vmmsOf?.(uid)) ?? [] });
      this.pumps.delete(uid);
    });
}
