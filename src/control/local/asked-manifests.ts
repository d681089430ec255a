/**
 * Manifests that somebody asks about before they are applied: read with the same parser and the same rules as those of the
 * folder, all of them, so that everything that is wrong is told at once. Nothing is written.
 */
import type { DesiredLife, VmId, VmSpec } from '@eitri/core/contracts';
import { PRIVATE_FILE_MODE } from '../../host/atomic-file.js';
import type { ManifestFile } from './folder-reading.js';
import { placesOf } from './folder-word.js';
import { resolveAsked, type ManifestFileRules } from './manifest-files.js';
import { lineText, parseText } from './manifest-text.js';

export interface AskedFile {
  /** As its reader calls it: for messages alone. */
  readonly name: string;
  readonly text: string;
}

export type AskedReading =
  | { readonly kind: 'specs'; readonly specs: readonly VmSpec[] }
  /** One line for each thing: file, line, field, what to mend. */
  | { readonly kind: 'refused'; readonly why: readonly string[] };

export async function readAsked(
  files: readonly AskedFile[],
  declared: readonly ManifestFile[],
  lives: readonly DesiredLife[],
  rules: ManifestFileRules,
): Promise<AskedReading> {
  const places = placesOf(declared);
  const seen = new Map<VmId, string>();
  const specs: VmSpec[] = [];
  const why: string[] = [];
  for (const { name, text } of files) {
    const parsed = parseText(text);
    if (parsed.kind === 'broken') {
      why.push(...parsed.issues.map((issue) => lineText(name, issue)));
      continue;
    }
    if (parsed.documents.length === 0) why.push(`${name}: no document in it`);
    for (const document of parsed.documents) {
      why.push(...document.issues.map((issue) => lineText(name, issue)));
      const { id, line, manifest } = document;
      if (id === undefined || manifest === undefined) continue;
      const other = seen.get(id);
      if (other !== undefined) {
        const message = `"${id}" is declared in ${other} too: keep one`;
        why.push(lineText(name, { line, field: 'metadata.name', message }));
        continue;
      }
      seen.set(id, `${name}:${line}`);
      // A file that is there keeps its owner, and with it what it may name; a new one is the agent's own.
      const [here] = places.get(id) ?? [];
      const file = declared.find((one) => one.name === here?.file);
      const owner = file?.stats ?? { uid: rules.agentUid, mode: PRIVATE_FILE_MODE };
      const known = lives.find((life) => life.id === id)?.spec;
      const resolved = await resolveAsked(document, owner, rules, known);
      if (resolved?.kind === 'spec') specs.push(resolved.spec);
      else if (resolved !== undefined) why.push(lineText(name, resolved.issue));
    }
  }
  return why.length > 0 ? { kind: 'refused', why } : { kind: 'specs', specs };
}
