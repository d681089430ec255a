/**
 * A terminal, or a pipe, joined to a guest's console.
 *
 *   attached → (Ctrl-] | the session ends | the input ends and the guest is quiet | a signal) → restored
 *
 * Owns the terminal's raw mode: whatever ends it, also an error or SIGTERM, the terminal is as it was before. Keys go to
 * the guest as they are, Ctrl-C too; Ctrl-] alone is ours.
 */
import { once } from 'node:events';
import type { ConsoleSession, SessionEnd } from '../../client/index.js';

/** Ctrl-], as telnet and virsh have it. */
const DETACH = 0x1d;
/** After the end of a piped input: so long without output, and the guest is taken to be done. */
const SETTLE_MS = 1_000;

const ENDING_SIGNALS = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;

export type ConsoleOutcome = SessionEnd | { readonly reason: 'detached' | 'input ended' | 'signal' };

export interface ConsoleInput {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  /** False: nothing is typed, and a piped input is not read. */
  readonly typing: boolean;
}

export async function joinConsole(
  session: ConsoleSession,
  { input, output, typing }: ConsoleInput,
): Promise<ConsoleOutcome> {
  const terminal = input.isTTY ? input : undefined;
  const undo: (() => void)[] = [];
  let settle: (outcome: ConsoleOutcome) => void = () => undefined;
  const left = new Promise<ConsoleOutcome>((resolve) => (settle = resolve));
  try {
    for (const signal of ENDING_SIGNALS) {
      const leave = (): void => {
        settle({ reason: 'signal' });
      };
      process.once(signal, leave);
      undo.push(() => process.off(signal, leave));
    }
    if (terminal !== undefined) {
      terminal.setRawMode(true);
      undo.push(() => terminal.setRawMode(false));
    }
    const quiet = new QuietWatch(() => {
      settle({ reason: 'input ended' });
    });
    undo.push(() => {
      quiet.stop();
    });
    if (terminal !== undefined || typing) {
      undo.push(takeInput(input, { session, typing, quiet, detach: () => settle({ reason: 'detached' }) }));
    }
    const shown = show(session, output, quiet);
    // The session's reason comes before its last bytes are on the screen.
    return await Promise.race([left, shown.then(() => session.ended)]);
  } finally {
    for (const step of undo.reverse()) step();
    session.leave();
    // An open standard input would keep the process alive. A file has nothing to let go of.
    input.pause();
    if ('unref' in input) input.unref();
  }
}

async function show(session: ConsoleSession, output: NodeJS.WriteStream, quiet: QuietWatch): Promise<void> {
  for await (const chunk of session.output) {
    quiet.heard();
    if (!output.write(chunk as Buffer)) await once(output, 'drain');
  }
}

interface InputParts {
  readonly session: ConsoleSession;
  readonly typing: boolean;
  readonly quiet: QuietWatch;
  readonly detach: () => void;
}

/** Answers the undoing. */
function takeInput(input: NodeJS.ReadStream, { session, typing, quiet, detach }: InputParts): () => void {
  const onData = (chunk: Buffer): void => {
    // A pipe carries any bytes: only a terminal has somebody who can press Ctrl-].
    const at = input.isTTY ? chunk.indexOf(DETACH) : -1;
    const bytes = at === -1 ? chunk : chunk.subarray(0, at);
    if (typing && bytes.length > 0) {
      input.pause();
      // Never rejects: a connection that broke ends the session.
      session.type(bytes).then(
        () => input.resume(),
        () => undefined,
      );
    }
    if (at !== -1) detach();
  };
  const onEnd = (): void => {
    session.endTyping();
    quiet.start();
  };
  input.on('data', onData);
  input.once('end', onEnd);
  return () => {
    input.off('data', onData);
    input.off('end', onEnd);
  };
}

/** Calls back once nothing was heard for a while, from its start on. */
class QuietWatch {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly onQuiet: () => void) {}

  start(): void {
    this.timer = setTimeout(this.onQuiet, SETTLE_MS);
  }

  heard(): void {
    this.timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
