/**
 * The operator API of one agent, `/v1` on two unix sockets: what is read, what is asked for, and how much of it.
 *
 * Owns the shapes that `--json` prints, which are therefore stable: a field is added, never renamed. Readers ignore
 * what they do not know, so that the commands of one version talk to the agent of the next. Times are ISO 8601 in UTC;
 * sizes have their unit in their name; what is not known is absent.
 */
import type { AgentEvent, DesiredIssue, PublishState, VmPhase, VmStatus } from '@eitri/core/contracts';
import { z } from 'zod';
import { vmSpecSchema } from './vm-spec-schema.js';

/** Of every path of the API; goes up when a reader of the old one would break. */
export const ADMIN_API_PREFIX = '/v1';

/** To look only. Its file mode is 0660: the group of the run directory's owner may look. */
export const READ_SOCKET = 'admin.sock';
/** To look and to act: 0600, the agent's own user. */
export const ACT_SOCKET = 'act.sock';

/** `Upgrade:` of a console; what follows are the frames of console-frames.ts. */
export const CONSOLE_UPGRADE = 'eitri-console';

/** What one agent serves at most, whoever asks. */
export const ADMIN_LIMITS = {
  /** Of one answer that is read as a whole. */
  answerBytes: 64 * 2 ** 20,
  /** Of a log's end that is asked for at once. */
  tailBytes: 8 * 2 ** 20,
  tailLines: 100_000,
  /** Of manifests that are handed in at once. */
  manifestBytes: 4 * 2 ** 20,
  /** Of manifests of which is asked what they would change, as they travel; less than what may be handed in, because whoever may look may ask. */
  askedBytes: 2 ** 20,
  askedFiles: 1_000,
  /** Of each log's end in an explanation. */
  explainLines: 20,
  explainLineChars: 400,
  explainBytes: 32 * 2 ** 10,
  explainEvents: 10,
  /** Of one line of the event stream. */
  eventBytes: 64 * 2 ** 10,
  /** Connections at a time, on each socket. */
  connections: 128,
  /** Followers (events, logs) at a time, on each socket. */
  followers: 48,
} as const;

const PHASES = [
  'Pending',
  'Creating',
  'Starting',
  'Running',
  'Paused',
  'Stopping',
  'Stopped',
  'Failed',
  'Shelved',
  'Destroying',
  'Unknown',
] as const satisfies readonly VmPhase[];

const WANTED = [
  'running',
  'stopped',
  'deleted',
  'vanished',
  'unknown',
] as const satisfies readonly VmStatus['wanted'][];

const count = z.number().int().nonnegative();
const text = z.string();

const exposure = z.object({
  hostAddress: text,
  hostPort: count,
  guestPort: count,
  protocol: z.enum(['tcp', 'udp']),
});

const port = z.object({
  exposure,
  state: z.enum(['published', 'busy', 'refused']),
  why: text.exactOptional(),
});

/** A VM in a listing. */
export const vmSummarySchema = z.object({
  uid: text,
  id: text,
  phase: z.enum(PHASES),
  wanted: z.enum(WANTED),
  /** One of the reason codes. */
  reason: text.exactOptional(),
  message: text.exactOptional(),
  cpus: count.exactOptional(),
  memoryMib: count.exactOptional(),
  diskGib: count.exactOptional(),
  backend: text.exactOptional(),
  pid: count.exactOptional(),
  address: text.exactOptional(),
  networkAddress: text.exactOptional(),
  mac: text.exactOptional(),
  boots: count,
  startedAt: text.exactOptional(),
  hostKeys: z.array(text),
  ports: z.array(port),
  labels: z.record(text, text),
});
/** A VM in a listing, as JSON has it. */
export type VmSummaryView = z.infer<typeof vmSummarySchema>;

const failure = z.object({ code: text, message: text, permanent: z.boolean(), at: text });

const lastExit = z.object({
  at: text,
  cause: z.enum(['self', 'stop', 'hostReboot']),
  code: z.number().int().exactOptional(),
  signal: text.exactOptional(),
  reason: text.exactOptional(),
});

const paths = z.object({
  folder: text,
  rootDisk: text,
  seed: text,
  serialLog: text,
  vmmLog: text,
  runFolder: text,
  volumes: z.array(text),
});

const prepared = z.object({
  /** `sha256:…`: the image that the root disk was made from. */
  image: text.exactOptional(),
  disk: z.boolean(),
  volumes: z.array(text),
  seed: z.boolean(),
});

/** Everything that the agent knows of one VM. */
export const vmViewSchema = vmSummarySchema.extend({
  createdAt: text.exactOptional(),
  /** What is declared now; absent: nobody declares it. */
  desiredSpec: vmSpecSchema.exactOptional(),
  /** What its resources were made for. */
  spec: vmSpecSchema.exactOptional(),
  namedMac: text.exactOptional(),
  console: z.enum(['none', 'connecting', 'connected']),
  paths: paths.exactOptional(),
  prepared: prepared.exactOptional(),
  /** The step that is under way, or was when an agent last ended. */
  step: text.exactOptional(),
  attempts: count,
  crashes: count,
  upMs: count,
  shelvedMs: count,
  failure: failure.exactOptional(),
  lastExit: lastExit.exactOptional(),
});
/** One VM as `GET /v1/vms/NAME` answers it. */
export type VmView = z.infer<typeof vmViewSchema>;

/** `GET /v1/vms`: sorted by id, then uid. */
export const vmListSchema = z.object({ vms: z.array(vmSummarySchema) });

const issue = z.object({
  source: text,
  line: count.exactOptional(),
  field: text.exactOptional(),
  message: text,
  id: text.exactOptional(),
});

const resources = z.object({ vcpus: count, memoryMib: count, diskGib: count });

/** `GET /v1/status`: this agent, its host, and how its VMs stand in numbers. */
export const statusSchema = z.object({
  version: text,
  pid: count,
  startedAt: text,
  host: z.object({
    hostname: text,
    os: text,
    arch: text,
    bootId: text,
    root: z.boolean(),
    cpus: count,
    memoryMib: count,
  }),
  stateDir: text,
  runDir: text,
  backend: z.object({
    name: text,
    vmmVersion: text,
    guestNetwork: z.enum(['tap', 'user']),
    /** Sentences: what works differently here. */
    notes: z.array(text),
  }),
  controlPlane: z.object({
    description: text,
    inContact: z.boolean(),
    lineage: text.exactOptional(),
    epoch: count.exactOptional(),
    revision: count.exactOptional(),
  }),
  /** What somebody declared and the agent does not do. */
  issues: z.array(issue),
  vms: z.object({
    total: count,
    /** By phase; phases that no VM is in are left out. */
    byPhase: z.record(text, count),
  }),
  capacity: z.object({
    held: resources,
    /** 0: unlimited. */
    caps: resources,
  }),
});
/** The status, as JSON has it. */
export type StatusView = z.infer<typeof statusSchema>;

/** One event; the stream of them has one a line. */
export const eventSchema = z.object({
  /** Counts up within one run of the agent. */
  seq: count,
  at: text,
  type: text,
  level: z.enum(['info', 'warn', 'error']),
  uid: text.exactOptional(),
  id: text.exactOptional(),
  message: text,
  reason: text.exactOptional(),
  progress: z.number().exactOptional(),
});
/** An event, as JSON has it. */
export type EventView = z.infer<typeof eventSchema>;

const waited = z.object({
  phase: z.enum(PHASES),
  reason: text.exactOptional(),
  message: text.exactOptional(),
});

const planStep = z.object({
  /** Stable, for programs: `create`, `fetchImage`, `boot`, … */
  do: text,
  /** From the asking on, at the earliest; 0: now. */
  inMs: count,
  at: text,
  /** It was begun already. */
  underWay: z.boolean(),
  /** What is waited for before it. */
  waited: waited.exactOptional(),
  what: text,
  why: text,
  /** Types of the events that tell of it, when it succeeds. */
  events: z.array(text),
});

/** What will be done to one VM, and where that ends, when nothing fails and nobody changes their mind. */
export const vmPlanSchema = z.object({
  /** Absent: there is no such VM yet. */
  uid: text.exactOptional(),
  id: text,
  wanted: z.enum(WANTED),
  /** How it is now; absent: there is no such VM yet. */
  phase: z.enum(PHASES).exactOptional(),
  /** Nothing is to be done, and nothing stands between it and what is wanted of it. */
  asWanted: z.boolean(),
  steps: z.array(planStep),
  end: z.object({
    kind: z.enum(['rest', 'gone']),
    inMs: count,
    /** Of a rest: where it stays until something changes. */
    phase: z.enum(PHASES).exactOptional(),
    reason: text.exactOptional(),
    message: text.exactOptional(),
  }),
});
/** The plan of one VM, as JSON has it. */
export type VmPlanView = z.infer<typeof vmPlanSchema>;

/** `GET /v1/plan`, and `POST /v1/plan` with manifests that are not declared yet. */
export const planSchema = z.object({
  /** Every VM is as wanted. */
  asWanted: z.boolean(),
  /** Sorted by id. */
  vms: z.array(vmPlanSchema),
  /** What is declared now and can't be done at all. */
  issues: z.array(issue),
});
/** The plan, as JSON has it. */
export type PlanView = z.infer<typeof planSchema>;

/** The body of `POST /v1/plan`: manifests as they would be applied. Names are for messages alone. */
export const askedManifestsSchema = z.object({
  files: z
    .array(z.object({ name: z.string().max(4_096), text }))
    .min(1)
    .max(ADMIN_LIMITS.askedFiles),
});
/** Manifests of which is asked what they would change. */
export type AskedManifests = z.infer<typeof askedManifestsSchema>;

const logEnd = z.object({
  path: text,
  /** The last ones, oldest first, with nothing in them that steers a terminal. */
  lines: z.array(text),
});

/** `GET /v1/vms/NAME/explain`: why it is as it is. */
export const explainSchema = z.object({
  uid: text,
  id: text,
  wanted: z.enum(WANTED),
  phase: z.enum(PHASES),
  asWanted: z.boolean(),
  /** Absent: nothing stands in its way. */
  reason: z.object({ code: text, meaning: text, check: text, next: text }).exactOptional(),
  message: text.exactOptional(),
  /** The last step that is known of: the one at work, or else the last that was begun. */
  step: z.object({ do: text, underWay: z.boolean() }).exactOptional(),
  failure: z
    .object({
      step: text.exactOptional(),
      at: text,
      code: text.exactOptional(),
      /** Nothing is tried again until its declaration changes. */
      permanent: z.boolean(),
      /** The error chain, outermost first. */
      causes: z.array(text),
    })
    .exactOptional(),
  attempts: count,
  crashes: count,
  lastExit: lastExit.exactOptional(),
  ports: z.array(port),
  plan: vmPlanSchema,
  vmmLog: logEnd.exactOptional(),
  console: logEnd.exactOptional(),
  /** The last ones of this VM, oldest first. */
  events: z.array(eventSchema),
});
/** An explanation, as JSON has it. */
export type ExplainView = z.infer<typeof explainSchema>;

/** What an act changed. */
export const actSchema = z.object({
  /** Absent: the agent has no life of it yet. */
  uid: text.exactOptional(),
  id: text,
  /** False: it was asked for already. */
  changed: z.boolean(),
  /** A sentence that says what was changed, and where. */
  message: text,
  /** Files of the manifest folder, relative to it. */
  files: z.array(text),
});
/** The answer to an act, as JSON has it. */
export type ActView = z.infer<typeof actSchema>;

/** What documents that were handed in changed. */
export const writtenSchema = z.object({
  /** False: the folder said so already. */
  changed: z.boolean(),
  message: text,
  /**
   * Each VM that they declare, the file of the manifest folder in which it stands, and, where the declaration was taken
   * up, whose life it is and what is wanted of it.
   */
  vms: z.array(
    z.object({
      id: text,
      file: text,
      uid: text.exactOptional(),
      power: z.enum(['running', 'stopped']).exactOptional(),
    }),
  ),
});
/** The answer to documents, as JSON has it. */
export type WrittenView = z.infer<typeof writtenSchema>;

/** Whom the hold after a mass vanishing was taken from. */
export const releasedSchema = z.object({
  /** Names, sorted; empty: nobody was held. */
  released: z.array(text),
  message: text,
});
/** The answer to a release, as JSON has it. */
export type ReleasedView = z.infer<typeof releasedSchema>;

/** What was put right of the guests' network. */
export const repairedSchema = z.object({
  /** A sentence for each thing; empty: nothing had drifted. */
  mended: z.array(text),
  message: text,
});
/** The answer to a repair, as JSON has it. */
export type RepairedView = z.infer<typeof repairedSchema>;

/** Stable over versions, like an exit code; `message` is for people. */
export const ADMIN_ERROR_CODES = [
  'notFound',
  'ambiguous',
  'notPermitted',
  'invalid',
  'conflict',
  'unavailable',
  'busy',
  'internal',
] as const;
/** Why a request was refused, for programs. */
export type AdminErrorCode = (typeof ADMIN_ERROR_CODES)[number];

/** The body of every answer that is an error. A code of a newer agent reads as `internal`. */
export const errorViewSchema = z.object({
  error: z.object({ code: z.enum(ADMIN_ERROR_CODES).catch('internal'), message: text }),
});
/** An error, as JSON has it. */
export type ErrorView = z.infer<typeof errorViewSchema>;

/** Why a console ended: `stopped` by the guest or the agent, `dropped` because it was read too slowly. */
export const consoleEndSchema = z.object({
  reason: z.enum(['stopped', 'dropped', 'taken over', 'closed']),
  by: text.exactOptional(),
});
/** The last frame of a console, as JSON has it. */
export type ConsoleEndView = z.infer<typeof consoleEndSchema>;

const iso = (atMs: number): string => new Date(atMs).toISOString();

/** A status as the API tells it. */
export function vmSummary(status: VmStatus): VmSummaryView {
  const { startedAt, ports, hostKeys, ...rest } = status;
  return {
    ...rest,
    ...(startedAt === undefined ? {} : { startedAt: iso(startedAt) }),
    hostKeys: [...hostKeys],
    ports: ports.map((one: PublishState) => ({ ...one })),
  };
}

/** An event as the API tells it. */
export const eventView = (event: AgentEvent): EventView => ({ ...event, at: iso(event.at) });

/** An issue as the API tells it. */
export const issueView = (one: DesiredIssue): StatusView['issues'][number] => ({ ...one });
