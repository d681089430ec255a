/**
 * A port publisher in memory that remembers what it was told. It is part of the agent's process: a dead agent holds none.
 */
import type { Exposure, PortPublisher, PublishState, VmUid } from '@eitri/core/contracts';

/** Told before and after each call; may throw, wait, or never come back. */
export type PublisherHook = (
  member: 'publish' | 'release',
  uid: VmUid,
  phase: 'before' | 'after',
) => void | Promise<void>;

export class MemoryPublisher implements PortPublisher {
  readonly told: { readonly member: 'publish' | 'release'; readonly uid: VmUid }[] = [];
  private readonly ports = new Map<VmUid, readonly Exposure[]>();

  constructor(private readonly hook: PublisherHook = () => undefined) {}

  /** What it holds for a VM now. */
  held(uid: VmUid): readonly Exposure[] {
    return this.ports.get(uid) ?? [];
  }

  readonly publish = async (
    uid: VmUid,
    exposures: readonly Exposure[],
    signal: AbortSignal,
  ): Promise<readonly PublishState[]> => {
    await this.hook('publish', uid, 'before');
    signal.throwIfAborted();
    this.told.push({ member: 'publish', uid });
    this.ports.set(uid, exposures);
    await this.hook('publish', uid, 'after');
    return exposures.map((exposure) => ({ exposure, state: 'published' }));
  };

  readonly release = async (uid: VmUid): Promise<void> => {
    await this.hook('release', uid, 'before');
    this.told.push({ member: 'release', uid });
    this.ports.delete(uid);
    await this.hook('release', uid, 'after');
  };
}
