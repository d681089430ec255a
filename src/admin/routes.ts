/**
 * The resources of the operator API. One set for both sockets; on the one that is to look only, every act is refused.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Clock, DesiredState, EditOutcome, VmId, VmStatus } from '@eitri/core/contracts';
import { errorLine, isVmId } from '@eitri/core/kit';
import {
  ACT_SOCKET,
  ADMIN_API_PREFIX,
  ADMIN_LIMITS,
  askedManifestsSchema,
  vmSummary,
  type ActView,
} from '@eitri/protocol';
import { z } from 'zod';
import { AdminError } from './admin-error.js';
import { explainView } from './explain.js';
import { streamEvents, streamLog, whileReading } from './follow.js';
import { eventsAbout, findVm, notFound } from './lookup.js';
import { imagined, planView } from './plan-views.js';
import type { AdminPorts, GuestNetworkActs } from './ports.js';
import {
  actView,
  releasedView,
  repairedView,
  statusView,
  vmView,
  writtenView,
  type Act,
  type WriteMode,
} from './views.js';

export interface RouteOptions {
  readonly ports: AdminPorts;
  readonly clock: Clock;
  readonly mayAct: boolean;
  /** Aborted when the agent closes its API. */
  readonly closing: AbortSignal;
}

const flag = z
  .enum(['0', '1', 'true', 'false', ''])
  .default('0')
  .transform((value) => value !== '0' && value !== 'false');
const bounded = (most: number) => z.coerce.number().int().nonnegative().max(most);

const manifestText = z.string('want the text of manifests, as application/yaml');
const vmParams = z.object({ id: z.string().min(1).max(200) });
const logQuery = z.object({
  which: z.enum(['serial', 'vmm']).default('serial'),
  tail: bounded(ADMIN_LIMITS.tailBytes).default(ADMIN_LIMITS.tailBytes),
  lines: bounded(ADMIN_LIMITS.tailLines).optional(),
  follow: flag,
});
const eventsQuery = z.object({
  since: bounded(Number.MAX_SAFE_INTEGER).default(0),
  vm: z.string().max(200).optional(),
  follow: flag,
});

export function addRoutes(app: FastifyInstance, { ports, clock, mayAct, closing }: RouteOptions): void {
  const { agent, editor, imagination, holds, consoles, network } = ports;
  const prefix = ADMIN_API_PREFIX;
  const find = (params: unknown): VmStatus => findVm(agent.report(), parse(vmParams, params).id);

  app.get(`${prefix}/status`, () => statusView(agent));
  app.get(`${prefix}/vms`, () => ({ vms: agent.report().vms.map(vmSummary) }));
  app.get(`${prefix}/vms/:id/explain`, ({ params }) => explainView(agent, clock, find(params)));
  app.get(`${prefix}/plan`, () => planView(agent, clock.now(), agent.plan()));

  // Asking changes nothing, so whoever may look may ask; reading manifests is work, so one is asked about at a time.
  let imagining = false;
  app.post(`${prefix}/plan`, { bodyLimit: ADMIN_LIMITS.askedBytes }, async ({ body }) => {
    const { files } = parse(askedManifestsSchema, body);
    if (imagining) throw new AdminError('busy', 'somebody asks for a plan just now: try again');
    imagining = true;
    try {
      return planView(agent, clock.now(), agent.plan(imagined(await imagination.imagine(files, closing))));
    } finally {
      imagining = false;
    }
  });
  app.get(`${prefix}/vms/:id`, ({ params }) => vmView(agent, consoles, find(params)));

  let followers = 0;
  /** Answers with a stream; `work` may go on until its signal is aborted. */
  const stream = async (
    reply: FastifyReply,
    type: string,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> => {
    if (followers >= ADMIN_LIMITS.followers) {
      throw new AdminError('busy', `${followers} followers are connected already, which is the limit`);
    }
    followers++;
    reply.hijack();
    const { raw } = reply;
    const { signal, done } = whileReading(raw, closing);
    try {
      raw.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' });
      // So that a follower knows that it is connected, also where nothing happens.
      raw.flushHeaders();
      await work(signal);
      raw.end();
    } catch {
      // The head is out: a cut answer is the only way left to say that it is not whole.
      raw.destroy();
    } finally {
      followers--;
      done();
    }
  };

  app.get(`${prefix}/vms/:id/logs`, async ({ params, query }, reply) => {
    const { which, tail, lines, follow } = parse(logQuery, query);
    const paths = agent.pathsOf(find(params).uid);
    const path = which === 'serial' ? paths.serialLog : paths.vmmLog;
    await stream(reply, 'application/octet-stream', (signal) =>
      streamLog(reply.raw, path, { tailBytes: tail, lines, follow }, clock, signal),
    );
  });

  app.get(`${prefix}/events`, async ({ query }, reply) => {
    const { since, vm, follow } = parse(eventsQuery, query);
    const concerns = vm === undefined ? undefined : eventsAbout(vm, agent);
    await stream(reply, 'application/x-ndjson', (signal) =>
      streamEvents(reply.raw, agent, { since, concerns, follow }, clock, signal),
    );
  });

  const checkMayAct = (): void => {
    if (!mayAct) throw new AdminError('notPermitted', `this socket is to look only: acts go to ${ACT_SOCKET}`);
  };

  const act = async (what: Act, params: unknown, edit: (id: VmId) => Promise<EditOutcome>): Promise<ActView> => {
    checkMayAct();
    const { id } = parse(vmParams, params);
    const report = agent.report();
    const byUid = report.vms.find((vm) => vm.uid === id);
    const known = byUid !== undefined || report.vms.some((vm) => vm.id === id);
    // A name means its document, whatever is at work here: it may be declared, or deleted, and the editor knows.
    const name = byUid?.id ?? id;
    if (!isVmId(name)) throw notFound(report, name);
    // A uid means one life. An edit of the document would hit the life that it declares, which may be another one.
    if (byUid !== undefined && !isDeclared(agent.desired(), byUid.uid)) {
      throw new AdminError(
        'conflict',
        `${id} is not the VM that is declared as ${name}: no edit of a manifest reaches it`,
      );
    }
    const result = await edit(name);
    if (result.kind === 'refused' && result.reason === 'notFound' && !known) throw notFound(report, name);
    const life = agent.desired()?.lives.find((one) => one.id === name);
    return actView(what, name, life?.uid, result);
  };

  app.post(`${prefix}/vms/:id/start`, ({ params }) =>
    act('start', params, (id) => editor.setPower(id, 'running', closing)),
  );
  app.post(`${prefix}/vms/:id/stop`, ({ params }) =>
    act('stop', params, (id) => editor.setPower(id, 'stopped', closing)),
  );
  app.delete(`${prefix}/vms/:id`, ({ params }) => act('delete', params, (id) => editor.remove(id, closing)));
  app.post(`${prefix}/vms/:id/undelete`, ({ params }) => act('undelete', params, (id) => editor.undelete(id, closing)));

  // Before the body is read: who may not act hands in nothing.
  const manifests = {
    bodyLimit: ADMIN_LIMITS.manifestBytes,
    // eslint-disable-next-line @typescript-eslint/require-await -- a hook that rejects refuses the request
    onRequest: async (): Promise<void> => {
      checkMayAct();
    },
  };
  const write = async (mode: WriteMode, body: unknown) => {
    const result = await editor.write(parse(manifestText, body), mode, closing);
    return writtenView(result, agent.desired());
  };
  app.post(`${prefix}/vms`, manifests, ({ body }) => write('create', body));
  app.put(`${prefix}/vms`, manifests, ({ body }) => write('apply', body));
  app.post(`${prefix}/holds/release`, async () => {
    checkMayAct();
    return releasedView(await holds.releaseHold(closing));
  });
  app.post(`${prefix}/network/repair`, async () => {
    checkMayAct();
    if (network === undefined) {
      throw new AdminError('unavailable', 'no network plugin gives guests a network here: each has one of its own');
    }
    return repairedView(await repairWith(network, closing));
  });
}

/** What can't be put right is the host's trouble, to be told in its own words. */
async function repairWith(network: GuestNetworkActs, closing: AbortSignal): Promise<readonly string[]> {
  try {
    return await network.repair(closing);
  } catch (error) {
    throw new AdminError('unavailable', `the guests' network could not be put right: ${errorLine(error)}`);
  }
}

const isDeclared = (desired: DesiredState | undefined, uid: string): boolean =>
  desired?.lives.some((life) => life.uid === uid) === true;

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new AdminError('invalid', `${issue?.path.join('.') ?? 'query'}: ${issue?.message ?? 'not understood'}`);
}
