/**
 * What happened lately: a bounded list, and listeners. Numbers count up within one run of the agent.
 */
import type { AgentEvent, Clock, EventSink, NewEvent } from '../contracts/index.js';

/** An `EventSink` that keeps the last events (1,000 by default; progress is not kept) and tells listeners at once. */
export class EventLog implements EventSink {
  private readonly events: AgentEvent[] = [];
  private readonly listeners = new Set<(event: AgentEvent) => void>();
  private seq = 0;

  constructor(
    private readonly clock: Clock,
    private readonly capacity = 1_000,
  ) {}

  readonly emit = (event: NewEvent): void => {
    const full: AgentEvent = { ...event, seq: ++this.seq, at: this.clock.now() };
    // Progress is for whoever listens now; kept, it would push out what matters.
    if (event.progress === undefined) {
      this.events.push(full);
      if (this.events.length > this.capacity) this.events.shift();
    }
    for (const listener of this.listeners) listener(full);
  };

  /** Kept events, oldest first, after the given number. */
  since(seq: number): readonly AgentEvent[] {
    return this.events.filter((e) => e.seq > seq);
  }

  listen(listener: (event: AgentEvent) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }
}
