/**
 * `.eitri-lineage`: what makes a folder a control plane. It says whose history the manifests beside it are; a folder
 * without it says nothing at all, because an unmounted disk, a wrong path and a fresh checkout look the same.
 *
 * Owns the file's form, and making one. Never guesses: what can't be read is told.
 */
import type { DesiredState, Random } from '@eitri/core/contracts';
import { errorLine, isVmUid, permanent, systemCode } from '@eitri/core/kit';
import { link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import {
  ensureNamedFolder,
  PUBLIC_FILE_MODE,
  readIfThere,
  syncFolder,
  writeAtomically,
} from '../../host/atomic-file.js';
import { plainValue, yamlText } from './yaml-text.js';

export const MARKER_FILE = '.eitri-lineage';
/** Manifests are no secret of the agent's; one that the operator made keeps its mode. */
const FOLDER_MODE = 0o755;
const MAX_MARKER_BYTES = 64 * 1024;

export interface LineageMarker {
  /** A lower-case UUID. */
  readonly lineage: string;
  /** Counted up by hand when the folder's history starts anew: an older copy of it is then refused. */
  readonly epoch: number;
}

/** Whose word this host follows, as far as it follows any. */
export type Accepted = Pick<DesiredState, 'lineage' | 'epoch'>;

export type MarkerReading =
  | { readonly kind: 'marker'; readonly marker: LineageMarker }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unreadable'; readonly why: string };

const schema = z.looseObject(
  {
    lineage: z.string('lineage is not a UUID').toLowerCase().refine(isVmUid, 'lineage is not a UUID'),
    epoch: z.number('epoch is not a number').int('epoch is not whole').nonnegative('epoch is negative'),
  },
  'it holds no lineage and epoch',
);

export async function readMarker(folder: string): Promise<MarkerReading> {
  try {
    const text = await readIfThere(join(folder, MARKER_FILE), MAX_MARKER_BYTES);
    if (text === undefined) return { kind: 'missing' };
    const yaml = yamlText(text);
    if (yaml.kind === 'broken')
      return { kind: 'unreadable', why: yaml.issues.map(({ message }) => message).join(', ') };
    const [document] = yaml.documents;
    const parsed = schema.safeParse(document === undefined ? undefined : plainValue(document));
    if (parsed.success) return { kind: 'marker', marker: parsed.data };
    return { kind: 'unreadable', why: parsed.error.issues.map((issue) => issue.message).join(', ') };
  } catch (error) {
    return { kind: 'unreadable', why: errorLine(error) };
  }
}

/**
 * What to do when a folder has no marker. A host that has VMs already needs the same lineage again: `init` would make
 * another, whose word the host refuses.
 */
export function markerHint(folder: string, accepted: Accepted | undefined): string {
  if (accepted === undefined) return `type: eitri-agent local init ${folder}`;
  const { lineage, epoch } = accepted;
  return `put its marker back: write the two lines "lineage: ${lineage}" and "epoch: ${epoch}" into ${join(folder, MARKER_FILE)}`;
}

export type InitOutcome =
  | { readonly kind: 'made'; readonly marker: LineageMarker }
  /** There is one already, and it stays. */
  | { readonly kind: 'exists'; readonly marker: LineageMarker };

/** Makes a folder, where it is missing, the control plane of a new lineage. Never replaces a marker, not even a broken one. */
export async function initFolder(folder: string, random: Random): Promise<InitOutcome> {
  try {
    // Level by level: below /proc, Node's own recursion never ends.
    await ensureNamedFolder(folder, FOLDER_MODE);
  } catch (cause) {
    throw permanent(`make ${folder} a manifest folder`, { cause });
  }
  const marker: LineageMarker = { lineage: random.uuid().toLowerCase(), epoch: 1 };
  const path = join(folder, MARKER_FILE);
  const draft = `${path}.${marker.lineage}`;
  try {
    await writeAtomically(draft, textOf(marker), PUBLIC_FILE_MODE);
    // A link, not a rename: of two that init at once, one wins and the other is told.
    await link(draft, path);
    await syncFolder(folder);
    return { kind: 'made', marker };
  } catch (cause) {
    if (systemCode(cause) !== 'EEXIST') throw cause;
  } finally {
    await rm(draft, { force: true });
  }
  const there = await readMarker(folder);
  if (there.kind === 'marker') return { kind: 'exists', marker: there.marker };
  throw permanent(
    `${path} is there and can’t be read (${there.kind === 'unreadable' ? there.why : 'it went away'}): put back a copy of it, or remove it by hand`,
  );
}

const textOf = ({ lineage, epoch }: LineageMarker): string =>
  `# The manifests in this folder say which VMs a host runs. Keep this file with them:
# without it the folder says nothing, and every VM stays as it is.
lineage: ${lineage}
epoch: ${epoch}
`;
