/**
 * Everybody who looks at one guest's console, and what they see: the history of this boot, then what is printed.
 *
 * Owns the rule of one writer. Many may look; one may type, and a second one is refused with the first one's name, or
 * takes over by force.
 */
import type { ConsoleAttach, ConsoleEnd, ConsoleSession } from '@eitri/core/contracts';
import { permanent, retryable } from '@eitri/core/kit';
import { ByteRing } from './byte-ring.js';
import { ViewerStream, type Typing } from './viewer.js';

export interface AudienceLimits {
  /** History kept for late viewers. */
  readonly historyBytes: number;
  /** How far a viewer may fall behind before it is dropped. */
  readonly lagBytes: number;
  readonly viewers: number;
}

export class Audience {
  private readonly history: ByteRing;
  private readonly viewers = new Set<ViewerStream>();
  private writer: { readonly viewer: ViewerStream; readonly who: string } | undefined;

  constructor(
    private readonly type: (typing: Typing) => void,
    private readonly limits: AudienceLimits,
    private readonly onDropped: (who: string) => void,
  ) {
    this.history = new ByteRing(limits.historyBytes);
  }

  /** What was printed before this agent came: for late viewers only. Called before the first `publish`. */
  remember(former: Buffer): void {
    this.history.push(former);
  }

  /** Shows all viewers what the guest printed. Costs one step a viewer, whatever they do. */
  publish(chunk: Buffer): void {
    this.history.push(chunk);
    for (const viewer of this.viewers) viewer.feed(chunk);
  }

  attach(options: ConsoleAttach): ConsoleSession {
    const who = options.who ?? 'somebody';
    const former = options.write ? this.writer : undefined;
    if (former !== undefined && !options.force) {
      throw permanent(`${former.who} is typing on this console already: --force takes it over`);
    }
    // By force, one goes for the one that comes.
    if (this.viewers.size - (former === undefined ? 0 : 1) >= this.limits.viewers) {
      throw retryable(`this console has ${this.limits.viewers} viewers already, which is the limit`);
    }
    former?.viewer.finish(options.who === undefined ? { reason: 'taken over' } : { reason: 'taken over', by: who });
    const viewer: ViewerStream = new ViewerStream({
      backlog: options.backlog ? this.history.newest() : Buffer.alloc(0),
      lagBytes: this.limits.lagBytes,
      ...(options.write ? { type: this.type } : {}),
      onTyped: () => {
        if (this.writer?.viewer === viewer) this.writer = undefined;
      },
      onOver: (end) => {
        this.viewers.delete(viewer);
        if (end.reason === 'dropped') this.onDropped(who);
      },
    });
    this.viewers.add(viewer);
    if (options.write) this.writer = { viewer, who };
    return viewer;
  }

  newest(maxBytes: number): Buffer {
    return this.history.newest(maxBytes);
  }

  endAll(end: ConsoleEnd): void {
    for (const viewer of this.viewers) viewer.finish(end);
  }
}
