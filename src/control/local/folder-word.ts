/**
 * What the files of a folder say, put together: who is declared where, who is deleted, and whose declaration can't be
 * read now. Pure but for the files that manifests name, which come in resolved.
 *
 * NOTHING THAT CAN'T BE READ IS AN ABSENCE. A file with a syntax error, or a document whose name can't be told, may
 * declare anybody: while it stands, no accepted VM that is missing elsewhere counts as missing. A document that is
 * refused by name keeps what was last accepted of that VM only.
 */
import type { DesiredIssue, DesiredLife, VmId, VmSpec } from '@eitri/core/contracts';
import { stableJson } from '@eitri/core/kit';
import type { ManifestFile } from './folder-reading.js';
import type { TextDocument } from './manifest-text.js';
import type { LineIssue } from './yaml-text.js';

export interface Place {
  readonly file: string;
  readonly document: TextDocument;
}

/** A manifest's spec with its files read in, or why that failed. */
export type Resolved =
  { readonly kind: 'spec'; readonly spec: VmSpec } | { readonly kind: 'issue'; readonly issue: LineIssue };

export interface FolderWord {
  readonly specs: ReadonlyMap<VmId, VmSpec>;
  readonly tombstones: readonly VmId[];
  readonly unreadable: readonly VmId[];
  readonly issues: readonly DesiredIssue[];
  /** In which file each declared VM stands. */
  readonly owners: ReadonlyMap<VmId, string>;
}

export interface WordInput {
  readonly files: readonly ManifestFile[];
  readonly deleted: readonly ManifestFile[];
  readonly resolved: ReadonlyMap<TextDocument, Resolved>;
  /** What the store holds now. */
  readonly lives: readonly DesiredLife[];
  /** `owners` of the look before. */
  readonly owners: ReadonlyMap<VmId, string>;
}

/** Every document of these files by name. */
export function placesOf(files: readonly ManifestFile[]): ReadonlyMap<VmId, readonly Place[]> {
  const places = new Map<VmId, Place[]>();
  for (const { name, parsed } of files) {
    if (parsed.kind === 'broken') continue;
    for (const document of parsed.documents) {
      if (document.id === undefined) continue;
      const known = places.get(document.id) ?? [];
      known.push({ file: name, document });
      places.set(document.id, known);
    }
  }
  return places;
}

export function folderWord(input: WordInput): FolderWord {
  const { files, deleted, resolved } = input;
  const places = placesOf(files);
  const issues = [...files, ...deleted].flatMap((file) => issuesOf(file, resolved));
  const specs = new Map<VmId, VmSpec>();
  const owners = new Map(input.owners);
  const unreadable = new Set<VmId>();
  for (const [id, here] of places) {
    if (here.length > 1) issues.push(...here.map((place) => duplicate(id, place, here)));
    const owner = here.length === 1 ? here[0] : ownerOf(id, here, input);
    const result = owner === undefined ? undefined : resolved.get(owner.document);
    if (owner !== undefined && result?.kind === 'spec') {
      specs.set(id, result.spec);
      owners.set(id, owner.file);
    } else unreadable.add(id);
  }
  const buried = placesOf(deleted);
  for (const [id, [grave]] of buried) {
    const [here] = places.get(id) ?? [];
    if (here !== undefined && grave !== undefined) issues.push(spentTombstone(id, grave, here));
  }
  const tombstones = [...buried.keys()].filter((id) => !places.has(id));
  if (files.some(mayDeclareAnybody)) {
    for (const { id } of input.lives) if (!places.has(id) && !buried.has(id)) unreadable.add(id);
  }
  for (const id of owners.keys()) if (!places.has(id) && !unreadable.has(id)) owners.delete(id);
  return { specs, tombstones: tombstones.toSorted(), unreadable: [...unreadable].toSorted(), issues, owners };
}

const mayDeclareAnybody = ({ parsed }: ManifestFile): boolean =>
  parsed.kind === 'broken' || parsed.documents.some((document) => document.id === undefined);

function issuesOf(file: ManifestFile, resolved: ReadonlyMap<TextDocument, Resolved>): DesiredIssue[] {
  const at = (issue: LineIssue, id?: VmId): DesiredIssue => ({
    source: file.name,
    ...issue,
    ...(id !== undefined && { id }),
  });
  if (file.parsed.kind === 'broken') return file.parsed.issues.map((issue) => at(issue));
  return file.parsed.documents.flatMap((document) => {
    const result = resolved.get(document);
    const own = document.issues.map((issue) => at(issue, document.id));
    return result?.kind === 'issue' ? [...own, at(result.issue, document.id)] : own;
  });
}

/**
 * Of several documents with one name, the one that counted so far: it is known from the look before, or it says what was
 * accepted. Without one, nobody counts: what was last accepted stays.
 */
function ownerOf(id: VmId, here: readonly Place[], { owners, lives, resolved }: WordInput): Place | undefined {
  const known = here.filter(({ file }) => file === owners.get(id));
  if (known.length === 1) return known[0];
  const accepted = lives
    .filter((life) => life.id === id && life.kind === 'present')
    .map(({ spec }) => stableJson(spec));
  const same = here.filter(({ document }) => {
    const result = resolved.get(document);
    return result?.kind === 'spec' && accepted.includes(stableJson(result.spec));
  });
  return same[0];
}

function duplicate(id: VmId, place: Place, here: readonly Place[]): DesiredIssue {
  const others = here.filter((other) => other !== place).map(({ file, document }) => `${file}:${document.line}`);
  return {
    source: place.file,
    line: place.document.line,
    field: 'metadata.name',
    message: `"${id}" is declared in ${others.join(', ')} too: keep one`,
    id,
  };
}

const spentTombstone = (id: VmId, grave: Place, here: Place): DesiredIssue => ({
  source: grave.file,
  line: grave.document.line,
  message: `${id} is declared in ${here.file} too, so it is not deleted: remove one, or ${id} is deleted when ${here.file} goes`,
  id,
});
