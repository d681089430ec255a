/**
 * Downloads under way and broken off. One that broke off keeps what came, so that the next try goes on from there; how
 * many of those are kept is bounded. Lives as long as the agent: the files of a dead one are swept.
 */
import { join } from 'node:path';
import type { ImageDigest } from '@eitri/core/contracts';
import { shortHash } from '@eitri/core/kit';
import type { Transfer } from './http-download.js';
import { PARTIAL_SUFFIX } from './image-index.js';
import { PartialFile } from './partial-file.js';

const MAX_IDLE = 16;

export class Transfers {
  /** In the order in which they began. */
  private readonly byKey = new Map<string, Transfer>();

  constructor(private readonly folder: string) {}

  /** The transfer of this key: the one that broke off, or a new one. */
  of(key: string, algorithm: ImageDigest['algorithm']): Transfer {
    const existing = this.byKey.get(key);
    if (existing !== undefined) return existing;
    const path = join(this.folder, shortHash(key, 32) + PARTIAL_SUFFIX);
    const transfer: Transfer = { partial: new PartialFile(path, algorithm), validators: {}, totalBytes: undefined };
    this.byKey.set(key, transfer);
    return transfer;
  }

  /** Those that nobody works on, oldest first. */
  idle(running: ReadonlySet<string>): readonly { readonly key: string; readonly doneBytes: number }[] {
    return [...this.byKey]
      .filter(([key]) => !running.has(key))
      .map(([key, { partial }]) => ({ key, doneBytes: partial.doneBytes }));
  }

  /** Makes room for one more. */
  async bound(running: ReadonlySet<string>): Promise<void> {
    const idle = this.idle(running);
    for (const { key } of idle.slice(0, Math.max(0, idle.length - MAX_IDLE))) await this.forget(key);
  }

  async forget(key: string): Promise<void> {
    const transfer = this.byKey.get(key);
    this.byKey.delete(key);
    await transfer?.partial.remove();
  }
}
