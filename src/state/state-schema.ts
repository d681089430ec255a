/**
 * The stored files' shapes: parsed, never cast. Pure.
 *
 * Each has a `version`. An older one is carried over step by step, a newer one is refused: this agent would not know
 * what it drops. Fields that it does not know, written by a newer agent of the same version, stay in the parsed value
 * and so survive a rewrite. Held by test/golden/state/ (every version that ever was on a disk).
 */
import { z } from 'zod';
import type {
  ExitState,
  Failure,
  Intent,
  IntentStep,
  Prepared,
  ReasonCode,
  Shelved,
  StopState,
  VmPaths,
  VmRecord,
} from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { imageDigestSchema, objectOf, vmIdSchema, vmSpecSchema, vmUidSchema } from '@eitri/protocol';

type RawObject = Readonly<Record<string, unknown>>;

/** From version n to n + 1, on the raw object, without its version. */
export type Migration = (raw: RawObject) => RawObject;

export interface StoredFormat<T> {
  /** What it is, for messages: `record`. */
  readonly what: string;
  readonly version: number;
  /** From each earlier version to its next. */
  readonly migrations: ReadonlyMap<number, Migration>;
  readonly schema: z.ZodType<T>;
}

/** Rejects, permanent, with the path of the field that failed. */
export function parseStored<T>(format: StoredFormat<T>, text: string): T {
  const raw = migrate(format, parseObject(format.what, text));
  const result = format.schema.safeParse(raw);
  if (result.success) return result.data;
  throw permanent(`${format.what} is not valid: ${issueLine(result.error)}`);
}

export const formatStored = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;

function parseObject(what: string, text: string): RawObject {
  if (text === '') throw permanent(`${what} is empty`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw permanent(`${what} is no JSON`, { cause });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as RawObject;
  throw permanent(`${what} is no object`);
}

function migrate<T>(format: StoredFormat<T>, raw: RawObject): RawObject {
  const { version } = raw;
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 1) {
    throw permanent(`${format.what} is not valid: version: must be a whole number from 1`);
  }
  if (version > format.version) {
    throw permanent(
      `${format.what} has version ${version}, written by a newer agent; this one reads up to ${format.version}`,
    );
  }
  let value = raw;
  for (let from = version; from < format.version; from++) {
    const step = format.migrations.get(from);
    if (step === undefined) throw permanent(`${format.what} has version ${from}, which is no longer read`);
    value = { ...step(value), version: from + 1 };
  }
  return value;
}

function issueLine(error: z.ZodError): string {
  const [first] = error.issues;
  if (first === undefined) return 'unknown trouble';
  const path = first.path.map(String).join('.');
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  return `${path === '' ? 'it' : path}: ${first.message}${more}`;
}

const count = z.int().min(0);
const ms = z.number().min(0);
const stampMs = z.number();
const path = z.string().startsWith('/');

const REASONS: Readonly<Record<ReasonCode, true>> = {
  Capacity: true, ImageDownloading: true, WaitingRetry: true, RecoveringAfterReboot: true, Throttled: true,
  ImageNotFound: true, ImageDigestMismatch: true, ImageUnsupported: true, DiskTooSmall: true, SpecInvalid: true,
  NetworkFailed: true, PortTaken: true, VmmFailed: true, BackendMissing: true, AttemptsExhausted: true,
  CrashLooping: true, RestartRequired: true, ShelvedTombstoned: true, ShelvedVanished: true, HeldMassVanish: true,
  HeldByOperator: true, RecordUnreadable: true, StuckPass: true, Unknown: true,
}; // prettier-ignore

const isReason = (text: string): text is ReasonCode => Object.hasOwn(REASONS, text);
/** A reason of a newer agent costs its name, not the record. */
const reason = z.string().transform((text): ReasonCode => (isReason(text) ? text : 'Unknown'));

const INTENT_STEPS: Readonly<Record<IntentStep, true>> = {
  fetchImage: true, prepareDisk: true, prepareVolumes: true, buildSeed: true, boot: true, shutdown: true, destroy: true,
}; // prettier-ignore
const intentStep = z.custom<IntentStep>(
  (value) => typeof value === 'string' && Object.hasOwn(INTENT_STEPS, value),
  'must be a known step',
);

const vmPaths = objectOf<VmPaths>()({
  folder: path,
  guestFolder: path,
  rootDisk: path,
  seed: path,
  vmmLog: path,
  pidFile: path,
  serialLog: path,
  keysFolder: path,
  runFolder: path,
}) satisfies z.ZodType<VmPaths>;

const vmRecord = objectOf<VmRecord>()({
  version: z.literal(2),
  uid: vmUidSchema,
  id: vmIdSchema,
  createdAt: stampMs,
  backend: z.string().min(1),
  spec: vmSpecSchema,
  paths: vmPaths,
  mac: z.string().regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/),
  namedMac: z.string().regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/),
  address: z.string().min(1).exactOptional(),
  networkAddress: z.string().min(1).exactOptional(),
  hostKeys: z.array(z.string()),
  volumePaths: z.array(path),
  prepared: objectOf<Prepared>()({
    image: imageDigestSchema.exactOptional(),
    imageBytes: count.exactOptional(),
    disk: z.boolean(),
    volumes: z.array(z.string()),
    seed: z.boolean(),
  }),
  diskGib: z.int().min(1).exactOptional(),
  bootAttempted: z.boolean(),
  bootId: z.string().min(1).exactOptional(),
  boots: count,
  startedAt: stampMs.exactOptional(),
  upMs: ms,
  intent: objectOf<Intent>()({ step: intentStep, at: stampMs, bootId: z.string() }).exactOptional(),
  attempts: count,
  waitedMs: ms,
  failure: objectOf<Failure>()({
    code: reason,
    message: z.string(),
    permanent: z.boolean(),
    at: stampMs,
    specDigest: z.string(),
  }).exactOptional(),
  stop: objectOf<StopState>()({
    elapsedMs: ms,
    step: z.enum(['powerButton', 'terminate', 'kill']).exactOptional(),
    presses: count,
    cancelled: z.boolean(),
  }).exactOptional(),
  lastExit: objectOf<ExitState>()({
    at: stampMs,
    cause: z.enum(['self', 'stop', 'hostReboot']),
    code: z.int().exactOptional(),
    signal: z.string().exactOptional(),
    reason: z.string().exactOptional(),
  }).exactOptional(),
  crashes: count,
  shelved: objectOf<Shelved>()({ absence: z.string().min(1), ms }).exactOptional(),
  destroying: z.boolean(),
}) satisfies z.ZodType<VmRecord>;

/** Version 1 did not say for which absence its `shelvedMs` was counted: the grace starts afresh. */
function unnamedGraceDropped({ shelvedMs: _dropped, ...record }: RawObject): RawObject {
  return record;
}

/** The names of all fields that a record may have as far as this agent knows. */
export const RECORD_FIELDS: ReadonlySet<string> = new Set(Object.keys(vmRecord.shape));

export const recordFormat: StoredFormat<VmRecord> = {
  what: 'record',
  version: 2,
  migrations: new Map([[1, unnamedGraceDropped]]),
  schema: vmRecord,
};

/**
 * What this state directory is bound to: `control.json`. Whose word is obeyed, and up to which, stands in desired.json
 * beside what was accepted: the fence and what it fences are one write.
 */
export interface ControlState {
  readonly version: 1;
  /** Names this state directory on the host (the ifalias of its bridge and taps). Made once. */
  readonly stateId: string;
  /** The machine that it was made on, or given to; absent: that machine has no id. */
  readonly machineId?: string;
  /** The pinned backend; absent: not chosen yet. */
  readonly backend?: string;
  /** What its VMs' networks are: `user`, or the network plugin's name; absent: not chosen yet, or by an older agent. */
  readonly network?: string;
}

export const controlFormat: StoredFormat<ControlState> = {
  what: 'control state',
  version: 1,
  migrations: new Map(),
  schema: objectOf<ControlState>()({
    version: z.literal(1),
    stateId: z.string().min(1),
    machineId: z.string().min(1).exactOptional(),
    backend: z.string().min(1).exactOptional(),
    network: z.string().min(1).exactOptional(),
  }),
};
