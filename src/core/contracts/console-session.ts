import type { Duplex } from 'node:stream';

/** How somebody wants to look at a guest's console. */
export interface ConsoleAttach {
  /** Wants to type. One viewer of a guest may. */
  readonly write: boolean;
  /** Takes the keyboard from whoever has it; that viewer's session ends. */
  readonly force: boolean;
  /**
   * Wants what was printed since the guest's power-on first, as far as it is remembered. What was printed under a former
   * agent is told as the log has it: a line that starts with `--- eitri:` says where output may be missing.
   */
  readonly backlog: boolean;
  /** Names the viewer to others: `root on tty1`. Shown, and trusted with nothing. */
  readonly who?: string;
}

/**
 * Why a session ended. `stopped`: the guest went, or the agent. `dropped`: it read too slowly. `taken over`: another
 * writer came by force. `closed`: it left by itself.
 */
export interface ConsoleEnd {
  readonly reason: 'stopped' | 'dropped' | 'taken over' | 'closed';
  /** Who took it over, where they said their name. */
  readonly by?: string;
}

/** One viewer of a guest's console. Its owner ends it by destroying the stream. */
export interface ConsoleSession {
  /**
   * Bytes read are what the guest printed, bytes written are typed, or let go where `write` was unset. Never emits an
   * error that needs a listener: a reader sees its end, or its close when it was dropped.
   */
  readonly stream: Duplex;
  /** Resolves once, as soon as the reason is known; what is left in the stream may still be read. Never rejects. */
  readonly ended: Promise<ConsoleEnd>;
}
