/**
 * Talks to the agent that runs on this host, over its two sockets: plain requests, streams, consoles.
 *
 * Owns what can go wrong on that way and says it in one sentence with the next step (`ClientError`). Knows nothing of the
 * agent's state directory, and keeps no connection longer than its caller.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { HostOs } from '@eitri/core/contracts';
import { errorLine, fitsSocketPath, systemCode } from '@eitri/core/kit';
import {
  ACT_SOCKET,
  actSchema,
  ADMIN_API_PREFIX,
  ADMIN_LIMITS,
  CONSOLE_UPGRADE,
  errorViewSchema,
  eventSchema,
  explainSchema,
  planSchema,
  READ_SOCKET,
  releasedSchema,
  repairedSchema,
  statusSchema,
  vmListSchema,
  vmViewSchema,
  writtenSchema,
  type ActView,
  type AdminErrorCode,
  type AskedManifests,
  type EventView,
  type ExplainView,
  type PlanView,
  type ReleasedView,
  type RepairedView,
  type StatusView,
  type VmSummaryView,
  type VmView,
  type WrittenView,
} from '@eitri/protocol';
import { Agent, request, type Dispatcher } from 'undici';
import type { z } from 'zod';
import { ConsoleSession } from './console-session.js';

/** `unreachable`: no agent there. `forbidden`: this user may not. All others are the agent's own words. */
export type ClientErrorKind = 'unreachable' | 'forbidden' | AdminErrorCode;

export class ClientError extends Error {
  constructor(
    readonly kind: ClientErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface AdminClientOptions {
  readonly runDir: string;
  /** Decides how long a socket's path may be; absent: Linux. */
  readonly os?: HostOs;
  /** How to start the agent, for the sentence that says that none answers. */
  readonly startHint?: string;
}

export interface LogOptions {
  readonly which: 'serial' | 'vmm';
  readonly lines?: number;
  readonly follow: boolean;
}

export interface ConsoleOptions {
  readonly write: boolean;
  readonly force: boolean;
  readonly backlog: boolean;
  /** Shown to whoever is refused, or taken over, because of us. */
  readonly who: string;
}

interface HandedIn {
  readonly type: string;
  readonly text: string;
}

const ANSWER_MS = 60_000;

export class AdminClient {
  private readonly dispatchers = new Map<string, Agent>();

  constructor(private readonly options: AdminClientOptions) {}

  readonly status = (signal: AbortSignal): Promise<StatusView> =>
    this.ask(READ_SOCKET, 'GET', '/status', statusSchema, signal);

  readonly vms = async (signal: AbortSignal): Promise<readonly VmSummaryView[]> =>
    (await this.ask(READ_SOCKET, 'GET', '/vms', vmListSchema, signal)).vms;

  readonly vm = (id: string, signal: AbortSignal): Promise<VmView> =>
    this.ask(READ_SOCKET, 'GET', vmPath(id), vmViewSchema, signal);

  /** Why a VM is as it is. */
  readonly explain = (id: string, signal: AbortSignal): Promise<ExplainView> =>
    this.ask(READ_SOCKET, 'GET', `${vmPath(id)}/explain`, explainSchema, signal);

  /** What will be done; with manifests, what would be if they were applied. Changes nothing. */
  readonly plan = (files: AskedManifests['files'], signal: AbortSignal): Promise<PlanView> => {
    if (files.length === 0) return this.ask(READ_SOCKET, 'GET', '/plan', planSchema, signal);
    const body: HandedIn = { type: 'application/json', text: JSON.stringify({ files }) };
    return this.ask(READ_SOCKET, 'POST', '/plan', planSchema, signal, body);
  };

  readonly start = (id: string, signal: AbortSignal): Promise<ActView> =>
    this.ask(ACT_SOCKET, 'POST', `${vmPath(id)}/start`, actSchema, signal);

  readonly stop = (id: string, signal: AbortSignal): Promise<ActView> =>
    this.ask(ACT_SOCKET, 'POST', `${vmPath(id)}/stop`, actSchema, signal);

  readonly remove = (id: string, signal: AbortSignal): Promise<ActView> =>
    this.ask(ACT_SOCKET, 'DELETE', vmPath(id), actSchema, signal);

  readonly undelete = (id: string, signal: AbortSignal): Promise<ActView> =>
    this.ask(ACT_SOCKET, 'POST', `${vmPath(id)}/undelete`, actSchema, signal);

  /** Declares the VMs of these manifests: only those that are not yet there, or each in the place of what is. */
  readonly write = (text: string, mode: 'create' | 'apply', signal: AbortSignal): Promise<WrittenView> =>
    this.ask(ACT_SOCKET, mode === 'create' ? 'POST' : 'PUT', '/vms', writtenSchema, signal, {
      type: 'application/yaml',
      text,
    });

  /** Lets go of what is held since many VMs vanished at once. */
  readonly releaseHolds = (signal: AbortSignal): Promise<ReleasedView> =>
    this.ask(ACT_SOCKET, 'POST', '/holds/release', releasedSchema, signal);

  /** Looks for drift of the guests' network now, and has it put right. */
  readonly repairNetwork = (signal: AbortSignal): Promise<RepairedView> =>
    this.ask(ACT_SOCKET, 'POST', '/network/repair', repairedSchema, signal);

  /** The log's bytes as they are, until its end, or for ever when followed. The signal ends it. */
  readonly logs = async (id: string, options: LogOptions, signal: AbortSignal): Promise<Readable> => {
    const query = new URLSearchParams({ which: options.which, follow: options.follow ? '1' : '0' });
    if (options.lines !== undefined) query.set('lines', String(options.lines));
    const { body } = await this.send(READ_SOCKET, 'GET', `${vmPath(id)}/logs?${query.toString()}`, signal);
    return body;
  };

  /** Kept events, then, when followed, each as it happens. */
  async *events(vm: string | undefined, follow: boolean, signal: AbortSignal): AsyncGenerator<EventView> {
    const query = new URLSearchParams({ follow: follow ? '1' : '0' });
    if (vm !== undefined) query.set('vm', vm);
    const { body } = await this.send(READ_SOCKET, 'GET', `/events?${query.toString()}`, signal);
    body.setEncoding('utf8');
    let rest = '';
    for await (const chunk of untilAgentEnds(body, signal)) {
      const lines = `${rest}${String(chunk)}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > ADMIN_LIMITS.eventBytes) throw new ClientError('internal', 'the agent sent an endless event');
      for (const line of lines) {
        // An empty one is a heartbeat.
        if (line !== '') yield this.parse(eventSchema, line, 'event');
      }
    }
  }

  /** Joins a console. The signal bounds the joining, and not the session. */
  readonly console = (id: string, options: ConsoleOptions, signal: AbortSignal): Promise<ConsoleSession> => {
    const socketPath = this.pathOf(options.write ? ACT_SOCKET : READ_SOCKET);
    const query = new URLSearchParams({ who: options.who });
    for (const name of ['write', 'force', 'backlog'] as const) if (options[name]) query.set(name, '1');
    return new Promise((resolve, reject) => {
      const asked = httpRequest({
        socketPath,
        path: `${ADMIN_API_PREFIX}${vmPath(id)}/console?${query.toString()}`,
        headers: { connection: 'Upgrade', upgrade: CONSOLE_UPGRADE },
      });
      const leave = (): void => {
        asked.destroy(new Error('aborted'));
      };
      signal.addEventListener('abort', leave, { once: true });
      asked.once('close', () => {
        signal.removeEventListener('abort', leave);
      });
      asked.once('upgrade', (_response, socket, head) => {
        signal.removeEventListener('abort', leave);
        resolve(new ConsoleSession(socket, head));
      });
      asked.once('response', (response) => {
        readRefusal(response).then((body) => {
          reject(refusalOf(response.statusCode ?? 500, body));
        }, reject);
      });
      asked.once('error', (error) => {
        reject(this.wrap(error, socketPath));
      });
      asked.end();
    });
  };

  async close(): Promise<void> {
    await Promise.all([...this.dispatchers.values()].map((agent) => agent.destroy()));
  }

  private async ask<T>(
    socket: string,
    method: Dispatcher.HttpMethod,
    path: string,
    schema: z.ZodType<T>,
    signal: AbortSignal,
    handedIn?: HandedIn,
  ): Promise<T> {
    const { body } = await this.send(socket, method, path, signal, handedIn);
    return this.parse(schema, await readText(body, ADMIN_LIMITS.answerBytes), path);
  }

  private async send(
    socket: string,
    method: Dispatcher.HttpMethod,
    path: string,
    signal: AbortSignal,
    handedIn?: HandedIn,
  ): Promise<Dispatcher.ResponseData> {
    const socketPath = this.pathOf(socket);
    let answer: Dispatcher.ResponseData;
    try {
      answer = await request(`http://agent${ADMIN_API_PREFIX}${path}`, {
        method,
        dispatcher: this.dispatcher(socketPath),
        headersTimeout: ANSWER_MS,
        bodyTimeout: 0,
        signal,
        ...(handedIn === undefined ? {} : { body: handedIn.text, headers: { 'content-type': handedIn.type } }),
      });
    } catch (error) {
      throw this.wrap(error, socketPath);
    }
    if (answer.statusCode < 400) return answer;
    throw refusalOf(answer.statusCode, await readText(answer.body, ADMIN_LIMITS.eventBytes));
  }

  private dispatcher(socketPath: string): Agent {
    const known = this.dispatchers.get(socketPath);
    if (known !== undefined) return known;
    const made = new Agent({ connect: { socketPath } });
    this.dispatchers.set(socketPath, made);
    return made;
  }

  private pathOf(socket: string): string {
    const path = join(this.options.runDir, socket);
    if (!fitsSocketPath(path, this.options.os ?? 'linux')) {
      throw new ClientError(
        'unreachable',
        `the run directory is too deep for sockets: ${path}: choose a shorter --run-dir`,
      );
    }
    return path;
  }

  private wrap(error: unknown, socketPath: string): Error {
    if (error instanceof Error && error.name === 'AbortError') return error;
    switch (systemCode(error)) {
      case 'ENOENT':
      case 'ECONNREFUSED':
      case 'ENOTDIR': {
        const hint = this.options.startHint ?? 'eitri-agent run';
        return new ClientError('unreachable', `no agent answers on ${socketPath}: start it with "${hint}"`);
      }
      case 'EACCES':
      case 'EPERM':
        return new ClientError(
          'forbidden',
          `you may not use ${socketPath}: run this as the agent's user (often with sudo)`,
        );
      default:
        return new ClientError('unreachable', `the agent on ${socketPath} broke off: ${errorLine(error)}`, {
          cause: error,
        });
    }
  }

  private parse<T>(schema: z.ZodType<T>, text: string, what: string): T {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch (cause) {
      throw new ClientError('internal', `the agent's answer to ${what} is no JSON`, { cause });
    }
    const parsed = schema.safeParse(json);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new ClientError(
      'internal',
      `the agent's answer to ${what} is not understood at ${issue?.path.join('.') ?? ''}: is it of another version?`,
    );
  }
}

const vmPath = (id: string): string => `/vms/${encodeURIComponent(id)}`;

function refusalOf(status: number, body: string): ClientError {
  try {
    const { error } = errorViewSchema.parse(JSON.parse(body));
    return new ClientError(error.code, error.message);
  } catch (cause) {
    return new ClientError('internal', `the agent answered with status ${status}`, { cause });
  }
}

async function readText(body: AsyncIterable<unknown>, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    if (length > mostBytes) throw new ClientError('internal', `the agent's answer is longer than ${mostBytes} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const readRefusal = (response: IncomingMessage): Promise<string> => readText(response, ADMIN_LIMITS.eventBytes);

/** A stream that breaks off was broken off by the end of the agent: it would have ended it. */
async function* untilAgentEnds(body: Readable, signal: AbortSignal): AsyncGenerator {
  try {
    yield* body;
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new ClientError(
      'unreachable',
      'the agent ended, and with it what was shown of it: see "eitri-agent status"',
      {
        cause,
      },
    );
  }
}
