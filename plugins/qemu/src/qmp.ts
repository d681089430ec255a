/**
 * Speaks QMP, the machine protocol of a running QEMU, over its unix socket.
 *
 * QEMU serves one client at a time: a second one connects, but is not greeted until the first has gone. So a connection
 * lives for one request only, requests of this agent to one guest queue here, and whoever waits does it under a deadline:
 * a QMP socket that somebody else keeps open makes answers fail, and never hang.
 *
 * A request: connect → greeting → `qmp_capabilities` → commands, one after the other → close. Events come at any moment,
 * also before the answer of the command that caused them; they are passed over.
 * Held by test/unit/qemu/qmp.test.ts and test/integration/qemu.
 */
import { connect, type Socket } from 'node:net';
import type { BackendHost } from '@eitri/core/contracts';
import { withDeadline } from './deadline.js';

export interface QmpCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/** What is waiting or being served for one socket; a guest has few callers, so more than this is a loop gone wild. */
const MAX_QUEUED = 64;
/** The longest single message; the schema, which nobody here asks for, is far below it. */
const MAX_MESSAGE_CHARS = 1024 * 1024;
const QUEUE_FULL_WAIT_MS = 50;

type Message = Readonly<Record<string, unknown>>;

const isMessage = (value: unknown): value is Message => typeof value === 'object' && value !== null;

async function* messagesOf(socket: Socket): AsyncGenerator<Message, undefined> {
  socket.setEncoding('utf8');
  let rest = '';
  for await (const chunk of socket as AsyncIterable<string>) {
    rest += chunk;
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const line = rest.slice(0, end).trim();
      rest = rest.slice(end + 1);
      if (line === '') continue;
      const message: unknown = JSON.parse(line);
      if (!isMessage(message)) throw new Error('qmp sent something that is not an object');
      yield message;
    }
    if (rest.length > MAX_MESSAGE_CHARS)
      throw new Error(`qmp sent a message of more than ${MAX_MESSAGE_CHARS} characters`);
  }
  return undefined;
}

async function next(messages: AsyncGenerator<Message, undefined>): Promise<Message> {
  const result = await messages.next();
  if (result.done === true) throw new Error('qmp closed the connection before it answered');
  return result.value;
}

function refusalOf(answer: Message): string | undefined {
  const { error } = answer;
  if (error === undefined) return undefined;
  return isMessage(error) && typeof error['desc'] === 'string' ? error['desc'] : 'refused without a description';
}

async function converse(socket: Socket, commands: readonly QmpCommand[]): Promise<readonly unknown[]> {
  const messages = messagesOf(socket);
  const greeting = await next(messages);
  if (!('QMP' in greeting)) throw new Error('the socket did not greet as qmp does');
  const answers: unknown[] = [];
  for (const [at, command] of [{ execute: 'qmp_capabilities' }, ...commands].entries()) {
    const id = `eitri-${at.toString()}`;
    socket.write(`${JSON.stringify({ ...command, id })}\n`);
    let answer = await next(messages);
    while (answer['id'] !== id) answer = await next(messages);
    const refusal = refusalOf(answer);
    if (refusal !== undefined) throw new Error(`qmp ${command.execute}: ${refusal}`);
    answers.push(answer['return']);
  }
  return answers.slice(1);
}

export class QmpClients {
  /** For each socket: the last request in its queue, and how many there are. */
  private readonly queues = new Map<string, { tail: Promise<unknown>; length: number }>();

  constructor(private readonly host: Pick<BackendHost, 'clock' | 'errors'>) {}

  /**
   * Runs commands on one connection and resolves with their answers, in order. Rejects, retryable, with the words of the
   * first that was refused, or when the limit (queueing included) is over. What was sent may have been carried out all
   * the same.
   */
  readonly run = async (
    path: string,
    commands: readonly QmpCommand[],
    limitMs: number,
    signal: AbortSignal,
  ): Promise<readonly unknown[]> => {
    const late = this.host.errors.retryable(`no answer within ${limitMs} ms from qmp at ${path}`);
    return withDeadline(this.host.clock, limitMs, late, signal, (bounded) =>
      this.inTurn(path, bounded, async () => {
        try {
          return await this.exchangePatiently(path, commands, bounded);
        } catch (cause) {
          if (bounded.aborted) throw reasonOf(bounded);
          throw this.host.errors.retryable(`ask qmp at ${path}`, { cause });
        }
      }),
    );
  };

  /**
   * QEMU's queue of clients holds two, and who left it is in it until QEMU has looked: the system then answers EAGAIN,
   * which passes.
   */
  private async exchangePatiently(
    path: string,
    commands: readonly QmpCommand[],
    signal: AbortSignal,
  ): Promise<readonly unknown[]> {
    for (;;) {
      try {
        return await exchange(path, commands, signal);
      } catch (error) {
        if (!isQueueFull(error)) throw error;
        await this.host.clock.sleep(QUEUE_FULL_WAIT_MS, signal);
      }
    }
  }

  private async inTurn<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const queue = this.queues.get(path) ?? { tail: Promise.resolve(), length: 0 };
    if (queue.length >= MAX_QUEUED)
      throw this.host.errors.retryable(`${MAX_QUEUED} requests wait already for qmp at ${path}`);
    this.queues.set(path, queue);
    queue.length++;
    const before = queue.tail;
    const mine = before.then(async () => {
      signal.throwIfAborted();
      return work();
    });
    queue.tail = mine.catch(() => undefined);
    try {
      return await Promise.race([mine, abortOf(signal)]);
    } finally {
      queue.length--;
      if (queue.length === 0) this.queues.delete(path);
    }
  }
}

const isQueueFull = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EAGAIN';

const reasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new Error('aborted');

/** Rejects when the signal is aborted; used in a race only. */
function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const say = (): void => reject(reasonOf(signal));
    if (signal.aborted) say();
    else signal.addEventListener('abort', say, { once: true });
  });
}

async function exchange(
  path: string,
  commands: readonly QmpCommand[],
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  signal.throwIfAborted();
  const socket = connect({ path });
  const leave = (): void => {
    socket.destroy(reasonOf(signal));
  };
  signal.addEventListener('abort', leave, { once: true });
  // The reader below throws what the socket ends with; without a listener of its own the same error would be uncaught.
  socket.on('error', () => undefined);
  try {
    return await converse(socket, commands);
  } finally {
    signal.removeEventListener('abort', leave);
    socket.destroy();
  }
}
