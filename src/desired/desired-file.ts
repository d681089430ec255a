/**
 * `desired.json`: its versions, its schema, its bytes. Pure: reading and writing are the store's.
 *
 * Equal states give equal bytes. Unknown fields survive a rewrite, and a file that does not fit is an error that names
 * what does not: it is never read as an empty one, because then every guest would be somebody nobody wants.
 */
import type { VmId, VmSpec, VmUid } from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import { vmIdSchema, vmSpecSchema, vmUidSchema } from '@eitri/protocol';
import { z } from 'zod';
import { parseStored } from '../state/state-schema.js';
import type { Migration, StoredFormat } from '../state/state-schema.js';

const VERSION = 2;

interface AnyLife {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly spec: VmSpec;
  /** Its uid came from a control plane, which may therefore name it again. */
  readonly given: boolean;
}

/** One life as the file holds it. */
export type StoredLife =
  | (AnyLife & { readonly kind: 'present'; readonly held: false })
  | (AnyLife & { readonly kind: 'tombstoned'; readonly held: false; readonly absence: string })
  | (AnyLife & { readonly kind: 'vanished'; readonly held: boolean; readonly absence: string });

export interface StoredDesired {
  readonly version: typeof VERSION;
  readonly lineage: string;
  readonly epoch: number;
  readonly revision: number;
  /** Sorted by uid. */
  readonly lives: readonly StoredLife[];
  /** Given uids whose lives are destroyed, oldest first: they never live again, whoever names them. */
  readonly settled: readonly VmUid[];
}

const anyLife = { uid: vmUidSchema, id: vmIdSchema, spec: vmSpecSchema, given: z.boolean() };
const absence = z.string().min(1);
const lifeSchema = z.discriminatedUnion('kind', [
  z.looseObject({ ...anyLife, kind: z.literal('present'), held: z.literal(false) }),
  z.looseObject({ ...anyLife, kind: z.literal('tombstoned'), held: z.literal(false), absence }),
  z.looseObject({ ...anyLife, kind: z.literal('vanished'), held: z.boolean(), absence }),
]);

const fileSchema = z
  .looseObject({
    version: z.literal(VERSION),
    lineage: z.string().min(1),
    epoch: z.number().int().nonnegative(),
    revision: z.number().int().nonnegative(),
    lives: z.array(lifeSchema),
    settled: z.array(vmUidSchema),
  })
  .refine(({ lives }) => new Set(lives.map((life) => life.uid)).size === lives.length, {
    path: ['lives'],
    error: 'two lives have one uid',
  });

/** Version 1 had no names for absences: each gets one that no later absence of that life can have. */
const absencesNamed: Migration = (raw) => {
  const { lives } = raw;
  if (!Array.isArray(lives)) return raw;
  const named = lives.map((life: unknown) =>
    typeof life === 'object' && life !== null && 'kind' in life && life.kind !== 'present'
      ? { ...life, absence: 'before-absences-had-names' }
      : life,
  );
  return { ...raw, lives: named };
};

const desiredFormat: StoredFormat<StoredDesired> = {
  what: 'desired state',
  version: VERSION,
  migrations: new Map([[1, absencesNamed]]),
  schema: fileSchema,
};

export const emptyDesired = (lineage: string, epoch: number): StoredDesired => ({
  version: VERSION,
  lineage,
  epoch,
  revision: 0,
  lives: [],
  settled: [],
});

/** Throws, permanent, an error whose message says what does not fit, and where. */
export const decodeDesired = (text: string): StoredDesired => parseStored(desiredFormat, text);

export const encodeDesired = (state: StoredDesired): string => `${stableJson(state)}\n`;
