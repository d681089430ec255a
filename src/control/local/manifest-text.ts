/**
 * From the text of one file to its manifests, each with the lines of what is wrong with it. Pure.
 *
 * A file with a syntax error anywhere says nothing as a whole: where one document ends and the next begins is then a
 * guess, and half a file that an editor is still writing must not count as a shorter one.
 */
import type { VmId, VmSpec } from '@eitri/core/contracts';
import { errorLine } from '@eitri/core/kit';
import { issueLine, manifestName, parseManifest } from '@eitri/protocol';
import { isAlias, isMap, isNode, isScalar, isSeq } from 'yaml';
import { plainValue, yamlText, type LineIssue, type YamlDocument } from './yaml-text.js';

export interface TextDocument {
  /** Place among the documents of its file, empty ones counted. */
  readonly index: number;
  /** Where it begins. */
  readonly line: number;
  /** Its name, also where the rest is refused. */
  readonly id?: VmId;
  readonly manifest?: { readonly spec: VmSpec; readonly userDataFile?: string; readonly userDataLine?: number };
  /** Empty exactly where there is a manifest. */
  readonly issues: readonly LineIssue[];
}

export type ParsedText =
  | { readonly kind: 'documents'; readonly documents: readonly TextDocument[] }
  | { readonly kind: 'broken'; readonly issues: readonly LineIssue[] };

export function parseText(text: string): ParsedText {
  if (text.trim() === '') return broken('is empty: is it being written? Remove it if it is not needed');
  if (text.includes('\0')) return broken('holds NUL bytes: it was torn by a crash; put back a copy of it');
  const yaml = yamlText(text);
  if (yaml.kind === 'broken') return yaml;
  return {
    kind: 'documents',
    documents: yaml.documents.flatMap((document, index) => {
      const empty = isScalar(document.contents) && document.contents.value === null;
      return document.contents === null || empty ? [] : [read(document, index, yaml.lineAt)];
    }),
  };
}

const broken = (message: string): ParsedText => ({ kind: 'broken', issues: [{ message }] });

function read(document: YamlDocument, index: number, lineAt: (offset: number) => number): TextDocument {
  const line = lineAt(document.contents?.range[0] ?? 0);
  let value: unknown;
  try {
    value = plainValue(document);
  } catch (error) {
    return { index, line, issues: [{ line, message: errorLine(error) }] };
  }
  const id = manifestName(value);
  const base = { index, line, ...(id !== undefined && { id }) };
  const lineOf = (keys: readonly (string | number)[]): number => {
    const offset = offsetOf(document, keys);
    return offset === undefined ? line : lineAt(offset);
  };
  const parsed = parseManifest(value, { userDataFile: true });
  if (!parsed.ok) {
    const issues = parsed.issues.map(({ keys, path, message }) => ({
      line: lineOf(keys),
      ...(path !== '' && { field: path }),
      message,
    }));
    return { ...base, issues };
  }
  const { spec, userDataFile } = parsed;
  const file = userDataFile !== undefined && { userDataFile, userDataLine: lineOf(['spec', 'userDataFile']) };
  return { ...base, manifest: { spec, ...file }, issues: [] };
}

/** Where a field stands; where it is missing, the nearest thing above it that is there. */
function offsetOf(document: YamlDocument, keys: readonly (string | number)[]): number | undefined {
  let node: unknown = document.contents;
  let offset: number | undefined;
  for (const key of keys) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => String(isScalar(item.key) ? item.key.value : item.key) === String(key));
      if (pair === undefined) break;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof key === 'number') {
      node = node.items[key];
      if (!isNode(node)) break;
      offset = node.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}

/** `web.yaml:3: spec.cpus: 0 is not in 1..256` */
export function lineText(file: string, issue: LineIssue): string {
  const where = issue.line === undefined ? file : `${file}:${issue.line}`;
  return `${where}: ${issueLine({ path: issue.field ?? '', keys: [], message: issue.message })}`;
}
