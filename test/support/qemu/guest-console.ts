/** Reads a guest's console as the pump does, from power-on: an unread line stalls the guest. */
import { onTestFinished } from 'vitest';
import type { ConsoleSource, VmUid } from '@eitri/core/contracts';
import { until } from '../until.js';

const GUEST_TIMEOUT_MS = 120_000;

export interface GuestConsole {
  /** Waits until what the guest printed, from `from` on, matches; answers the match. */
  readonly seen: (pattern: RegExp) => Promise<RegExpExecArray>;
  readonly type: (line: string) => void;
  readonly text: () => string;
  /** Forgets what was printed so far. */
  readonly clear: () => void;
}

export async function consoleOf(backend: { readonly console: ConsoleSource }, uid: VmUid): Promise<GuestConsole> {
  const signal = new AbortController().signal;
  const stream = await until(() => backend.console.open(uid, signal), { what: 'the console opens' });
  onTestFinished(() => {
    stream.destroy();
  });
  let text = '';
  stream.on('error', () => undefined);
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  return {
    seen: (pattern) =>
      until(() => pattern.exec(text), {
        timeoutMs: GUEST_TIMEOUT_MS,
        everyMs: 50,
        what: `the guest prints ${pattern.source}; it printed: ${text.slice(-400)}`,
      }),
    type: (line) => {
      stream.write(`${line}\n`);
    },
    text: () => text,
    clear: () => {
      text = '';
    },
  };
}
