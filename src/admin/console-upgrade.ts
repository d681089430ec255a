/**
 * A console over an HTTP connection that was upgraded: frames to the viewer, plain bytes from it.
 *
 * Never holds more than the connection's own buffers: how far a viewer may fall behind is the console's to judge, and it
 * drops whom it must. A half-close of the viewer ends its typing, not its looking.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, ConsoleEnd, ConsoleSession } from '@eitri/core/contracts';
import { errorLine } from '@eitri/core/kit';
import { ADMIN_API_PREFIX, CONSOLE_UPGRADE, encodeEnd, encodeOutput } from '@eitri/protocol';
import { AdminError } from './admin-error.js';
import { findVm } from './lookup.js';
import type { AdminPorts } from './ports.js';

const PATH = new RegExp(`^${ADMIN_API_PREFIX}/vms/([^/?]{1,200})/console$`);
const MAX_WHO_CHARS = 64;
/** How long a viewer may take to read the last frames, after which it is cut off. */
const LAST_WORDS_MS = 5_000;

export interface ConsoleRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What came behind the request already. */
  readonly head: Buffer;
  readonly mayAct: boolean;
}

/** Resolves when the connection is over. Never rejects. */
export async function serveConsole(
  { request, socket, head, mayAct }: ConsoleRequest,
  ports: AdminPorts,
  clock: Clock,
  closing: AbortSignal,
): Promise<void> {
  // Without a listener a viewer that resets its connection would end the agent.
  socket.on('error', () => socket.destroy());
  let viewer: ConsoleSession;
  try {
    viewer = attach(request, ports, mayAct);
  } catch (error) {
    refuse(socket, error instanceof AdminError ? error : new AdminError('conflict', errorLine(error)));
    return;
  }
  const gone = new Promise<void>((resolve) => socket.once('close', resolve));
  const leave = (): void => {
    viewer.stream.destroy();
  };
  closing.addEventListener('abort', leave, { once: true });
  socket.once('close', leave);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${CONSOLE_UPGRADE}\r\n\r\n`);
  if (head.length > 0) socket.unshift(head);
  socket.pipe(viewer.stream);
  await copyOutput(viewer.stream, socket);
  socket.unpipe(viewer.stream);
  // Nobody types any more; what still comes is read and let go, or the connection would never see its end.
  socket.resume();
  const end: ConsoleEnd = closing.aborted ? { reason: 'stopped' } : await viewer.ended;
  viewer.stream.destroy();
  socket.end(encodeEnd(end));
  const over = new AbortController();
  await Promise.race([gone, clock.sleep(LAST_WORDS_MS, over.signal).catch(() => undefined)]);
  over.abort();
  socket.destroy();
  closing.removeEventListener('abort', leave);
}

function attach(request: IncomingMessage, ports: AdminPorts, mayAct: boolean): ConsoleSession {
  const url = new URL(request.url ?? '/', 'http://agent');
  if (request.headers.upgrade !== CONSOLE_UPGRADE || request.method !== 'GET') {
    throw new AdminError(
      'invalid',
      `only consoles are reached by an upgrade: GET …/console, Upgrade: ${CONSOLE_UPGRADE}`,
    );
  }
  const [, word] = PATH.exec(url.pathname) ?? [];
  if (word === undefined) throw new AdminError('notFound', 'no such resource; a console is /v1/vms/NAME/console');
  const asked = (name: string): boolean => url.searchParams.get(name) === '1';
  const write = asked('write');
  if (write && !mayAct) throw new AdminError('notPermitted', 'this socket is to look only: typing needs act.sock');
  const vm = findVm(ports.agent.report(), decode(word));
  if (ports.consoles.state(vm.uid) === 'none') {
    throw new AdminError('unavailable', `${vm.id} has no console now: it is ${vm.phase}`);
  }
  const who = (url.searchParams.get('who') ?? '').replace(/[^ -~]/g, '').slice(0, MAX_WHO_CHARS);
  return ports.consoles.attach(vm.uid, {
    write,
    force: asked('force'),
    backlog: asked('backlog'),
    ...(who === '' ? {} : { who }),
  });
}

function decode(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

function refuse(socket: Duplex, error: AdminError): void {
  const body = JSON.stringify(error.view);
  socket.end(
    `HTTP/1.1 ${error.status} Refused\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

async function copyOutput(stream: Duplex, socket: Duplex): Promise<void> {
  try {
    for await (const chunk of stream) {
      if (socket.destroyed) return;
      if (!socket.write(encodeOutput(chunk as Buffer))) await drained(socket);
    }
  } catch {
    // Cut off: a dropped viewer, or a closing agent. `ended` says which.
  }
}

const drained = (socket: Duplex): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      socket.off('drain', go);
      socket.off('close', go);
      resolve();
    };
    socket.once('drain', go);
    socket.once('close', go);
  });
