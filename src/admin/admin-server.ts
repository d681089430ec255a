/**
 * The operator API of this agent, on two unix sockets in the run directory: `admin.sock` to look (0660: whoever is in
 * the group of that directory's owner), `act.sock` to look and to act (0600: the agent's own user). Node can't ask who
 * the peer is, so what a peer may do is what the file's mode lets it open.
 *
 *   new → start → open → close → closed
 *
 * Bounded in every way: connections, followers, what waits to be read. A client that vanishes or reads slowly costs its
 * own connection and nothing else. Knows the agent only through its ports.
 */
import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { fastify, type FastifyInstance } from 'fastify';
import { inject, injectable } from 'tsyringe';
import { CLOCK, LOGGER, type Clock, type HostOs, type Logger } from '@eitri/core/contracts';
import { detach, errorLine } from '@eitri/core/kit';
import { ACT_SOCKET, ADMIN_LIMITS, READ_SOCKET } from '@eitri/protocol';
import { AdminError } from './admin-error.js';
import { serveConsole } from './console-upgrade.js';
import { ADMIN_PORTS, type AdminPorts } from './ports.js';
import { addRoutes } from './routes.js';
import { placeSocket, refuseTaken, type PlacedSocket } from './unix-socket.js';

const READ_MODE = 0o660;
const ACT_MODE = 0o600;
const BODY_BYTES = 16 * 1024;
const REQUEST_MS = 10_000;

export interface AdminOptions {
  /** Where the sockets stand. It must be there. */
  readonly runDir: string;
  readonly os: HostOs;
}

export const ADMIN_OPTIONS = Symbol.for('eitri.admin-options@1');

/**
 * Rejects, permanent, where a server would find its sockets' places taken: for a start, which must know before it touches
 * anything. Changes nothing.
 */
export async function checkSockets(runDir: string): Promise<void> {
  for (const name of [READ_SOCKET, ACT_SOCKET]) await refuseTaken(join(runDir, name));
}

interface Door {
  readonly app: FastifyInstance;
  readonly socket: PlacedSocket;
}

@injectable()
export class AdminServer {
  private readonly closing = new AbortController();
  private readonly consoles = new Set<Promise<void>>();
  private readonly doors: Door[] = [];

  constructor(
    @inject(ADMIN_PORTS) private readonly ports: AdminPorts,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
    @inject(ADMIN_OPTIONS) private readonly options: AdminOptions,
  ) {
    // One for each follower and console, whose numbers are bounded; Node warns from the eleventh on.
    setMaxListeners(0, this.closing.signal);
  }

  /**
   * Opens both sockets. A socket that a dead agent left is replaced; rejects, permanent, where somebody answers on it,
   * or where its path is too long for this system. When it rejects nothing is left open.
   */
  async start(): Promise<void> {
    try {
      await this.open(READ_SOCKET, READ_MODE, false);
      await this.open(ACT_SOCKET, ACT_MODE, true);
    } catch (error) {
      await this.close(0);
      throw error;
    }
  }

  /** Ends every follower and console, finishes requests under way, and lets go of the sockets within `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.closing.abort(new Error('the agent ends'));
    const late = new AbortController();
    const drained = Promise.all([...this.consoles, ...this.doors.map(({ app }) => app.close())]);
    const inTime = await Promise.race([
      drained.then(() => true),
      this.clock.sleep(deadlineMs, late.signal).then(
        () => false,
        () => true,
      ),
    ]);
    late.abort();
    if (!inTime) {
      for (const { app } of this.doors) app.server.closeAllConnections();
      this.log.warn('admin.close.cut', { deadlineMs });
    }
    for (const { socket } of this.doors.splice(0)) await socket.remove();
  }

  private async open(name: string, mode: number, mayAct: boolean): Promise<void> {
    const app = this.makeApp(mayAct);
    try {
      const path = join(this.options.runDir, name);
      const socket = await placeSocket(path, mode, this.options.os, (born) => app.listen({ path: born }));
      this.doors.push({ app, socket });
    } catch (error) {
      await app.close();
      throw error;
    }
  }

  private makeApp(mayAct: boolean): FastifyInstance {
    const app = fastify({
      bodyLimit: BODY_BYTES,
      requestTimeout: REQUEST_MS,
      // A client that keeps its connection would keep `close` waiting.
      forceCloseConnections: 'idle',
      routerOptions: { maxParamLength: 200 },
    });
    app.server.maxConnections = ADMIN_LIMITS.connections;
    app.addContentTypeParser('application/yaml', { parseAs: 'string' }, (_request, body, done) => {
      done(null, body);
    });
    app.setErrorHandler((error, _request, reply) => {
      const known = this.toAdminError(error);
      return reply.status(known.status).send(known.view);
    });
    app.setNotFoundHandler((_request, reply) => {
      const error = new AdminError(
        'notFound',
        'no such resource: /v1/status, /v1/vms, /v1/plan and /v1/events are there',
      );
      return reply.status(error.status).send(error.view);
    });
    addRoutes(app, { ports: this.ports, clock: this.clock, mayAct, closing: this.closing.signal });
    app.server.on('upgrade', (request, socket, head) => {
      const served = serveConsole({ request, socket, head, mayAct }, this.ports, this.clock, this.closing.signal);
      this.consoles.add(served);
      detach(
        served.finally(() => this.consoles.delete(served)),
        this.log,
        'admin.console.failed',
      );
    });
    return app;
  }

  private toAdminError(error: unknown): AdminError {
    if (error instanceof AdminError) return error;
    const status = typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : undefined;
    if (typeof status === 'number' && status < 500) return new AdminError('invalid', errorLine(error));
    this.log.error('admin.request.failed', { err: error });
    return new AdminError('internal', errorLine(error));
  }
}
