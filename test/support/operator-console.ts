/**
 * A console that was joined by the command: what it shows, and a keyboard.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from './until.js';

const ANSWER = { timeoutMs: 60_000, everyMs: 20 };

export class OperatorConsole {
  private readonly child: ChildProcessWithoutNullStreams;
  private text = '';
  private errors = '';
  private seen = 0;

  constructor(command: string, args: readonly string[]) {
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stdout.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    this.child.stderr.setEncoding('utf8').on('data', (chunk: string) => (this.errors += chunk));
    // The command may end before all that was typed has reached it.
    this.child.stdin.on('error', () => undefined);
  }

  /** All that was shown since it was joined. */
  get shown(): string {
    return this.text;
  }

  type(line: string): void {
    this.seen = this.text.length;
    this.child.stdin.write(`${line}\n`);
  }

  /** Types a line and waits for its answer. */
  async ask(line: string, answer: RegExp): Promise<RegExpExecArray> {
    this.type(line);
    return await this.expect(answer);
  }

  /** Waits for something that was shown after the last typed line. */
  async expect(pattern: RegExp): Promise<RegExpExecArray> {
    return await until(
      () => {
        const found = pattern.exec(this.text.slice(this.seen));
        if (found === null && this.child.exitCode !== null) throw new Error(`the console ended: ${this.errors}`);
        return found;
      },
      { ...ANSWER, what: `the console shows ${String(pattern)}` },
    );
  }

  async leave(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}
