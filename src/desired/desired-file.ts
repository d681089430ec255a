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

const VERSION = 1;

/** One life as the file holds it. `given`: its uid came from a control plane, which may therefore name it again. */
export interface StoredLife {
  readonly kind: 'present' | 'tombstoned' | 'vanished';
  readonly uid: VmUid;
  readonly id: VmId;
  readonly spec: VmSpec;
  readonly held: boolean;
  readonly given: boolean;
}

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

const lifeSchema = z.looseObject({
  kind: z.enum(['present', 'tombstoned', 'vanished']),
  uid: vmUidSchema,
  id: vmIdSchema,
  spec: vmSpecSchema,
  held: z.boolean(),
  given: z.boolean(),
});

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

export const emptyDesired = (lineage: string, epoch: number): StoredDesired => ({
  version: VERSION,
  lineage,
  epoch,
  revision: 0,
  lives: [],
  settled: [],
});

/** Throws an error whose message says what does not fit, and where. */
export function decodeDesired(text: string): StoredDesired {
  const json: unknown = JSON.parse(text);
  const version = z.looseObject({ version: z.number() }).safeParse(json);
  if (version.success && version.data.version > VERSION) {
    throw new Error(
      `a newer agent wrote it (version ${version.data.version}, this one knows ${VERSION}): run that one`,
    );
  }
  const parsed = fileSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`.replace(/^: /, ''));
}

export const encodeDesired = (state: StoredDesired): string => `${stableJson(state)}\n`;
