/**
 * A port publisher in memory that remembers what it was told. It is part of the agent's process: a dead agent holds none.
 */
import { CallLog } from '@eitri/conformance';
import type { Exposure, PortPublisher, PublishState, VmUid } from '@eitri/core/contracts';

export class MemoryPublisher implements PortPublisher {
  private readonly ports = new Map<VmUid, readonly Exposure[]>();

  constructor(readonly calls: CallLog = new CallLog()) {}

  /** What it holds for a VM now. */
  held(uid: VmUid): readonly Exposure[] {
    return this.ports.get(uid) ?? [];
  }

  readonly publish = (
    uid: VmUid,
    exposures: readonly Exposure[],
    signal: AbortSignal,
  ): Promise<readonly PublishState[]> =>
    this.calls.around('portPublisher.publish', uid, () => {
      signal.throwIfAborted();
      this.ports.set(uid, exposures);
      return exposures.map((exposure): PublishState => ({ exposure, state: 'published' }));
    });

  readonly release = (uid: VmUid): Promise<void> =>
    this.calls.around('portPublisher.release', uid, () => {
      this.ports.delete(uid);
    });
}
