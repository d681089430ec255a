/**
 * Edits of one document inside a file's text, byte for byte: comments, order, quoting and indentation stay as a person
 * left them. Pure.
 *
 * Each edit is checked by reading the result again: it must say what was asked for and nothing else must say anything
 * new. So an anchor, a merge key or a layout that these edits do not understand is refused, and never half-changed.
 */
import type { PowerState } from '@eitri/core/contracts';
import { isMap, isScalar, Parser, type YAMLMap } from 'yaml';
import { isDeepStrictEqual } from 'node:util';
import { plainValue, yamlText, type YamlDocument } from './yaml-text.js';

export type TextEdit =
  { readonly kind: 'edited'; readonly text: string } | { readonly kind: 'refused'; readonly why: string };

const refused = (why: string): TextEdit => ({ kind: 'refused', why });

function valuesOf(text: string): readonly unknown[] | undefined {
  const yaml = yamlText(text);
  if (yaml.kind === 'broken') return undefined;
  try {
    return yaml.documents.map(plainValue);
  } catch {
    return undefined;
  }
}

function documentsOf(text: string): readonly YamlDocument[] {
  const yaml = yamlText(text);
  return yaml.kind === 'broken' ? [] : yaml.documents;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** Sets `spec.power` of the document at `index`. */
export function setPowerIn(text: string, index: number, power: PowerState): TextEdit {
  const byHand = refused(`set power: ${power} under spec by hand: its anchors, aliases or layout allow no safe edit`);
  const before = valuesOf(text);
  const old = before?.[index];
  if (before === undefined || !isRecord(old) || !isRecord(old['spec'])) return byHand;
  if (old['spec']['power'] === power) return { kind: 'edited', text };
  const splice = powerSplice(text, documentsOf(text)[index]?.get('spec', true), power);
  if (splice === undefined) return byHand;
  const edited = text.slice(0, splice.from) + splice.insert + text.slice(splice.to);
  const wanted = before.with(index, { ...old, spec: { ...old['spec'], power } });
  return isDeepStrictEqual(valuesOf(edited), wanted) ? { kind: 'edited', text: edited } : byHand;
}

interface Splice {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

function powerSplice(text: string, spec: unknown, power: PowerState): Splice | undefined {
  if (!isMap(spec)) return undefined;
  const { value } = spec.items.find(({ key }) => isScalar(key) && key.value === 'power') ?? {};
  if (value === undefined || value === null) return newPower(text, spec, power);
  if (!isScalar(value) || !value.range) return undefined;
  const [from, to] = value.range;
  const quote = /^["']/.exec(text.slice(from, to))?.[0] ?? '';
  return { from, to, insert: `${quote}${power}${quote}` };
}

/** A line, or an entry, of its own in front of the first one, looking like it. */
function newPower(text: string, spec: YAMLMap, power: PowerState): Splice | undefined {
  const first = spec.items[0]?.key;
  if (!isScalar(first) || !first.range || !spec.range) return undefined;
  const [at] = first.range;
  if (spec.flow === true) {
    const gap = text.slice(spec.range[0] + 1, at);
    if (gap.trim() !== '') return undefined;
    const quote = text[at] === '"' ? '"' : '';
    const entry = `${quote}power${quote}: ${quote}${power}${quote},`;
    return { from: at, to: at, insert: `${entry}${gap === '' ? ' ' : gap}` };
  }
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  const indent = text.slice(lineStart, at);
  const newline = text.slice(0, lineStart).endsWith('\r\n') ? '\r\n' : '\n';
  return indent.trim() === '' ? { from: at, to: at, insert: `power: ${power}${newline}${indent}` } : undefined;
}

/** The text of each document, empty ones counted; together they are the whole text. Undefined: not to be told apart. */
export function segmentsOf(text: string): readonly string[] | undefined {
  const documents = documentsOf(text);
  if (documents.length === 0) return undefined;
  const starts: number[] = [];
  for (const token of new Parser().parse(text)) {
    if (token.type !== 'document') continue;
    const marker = token.start.find((part) => part.type === 'doc-start');
    starts.push(starts.length === 0 ? 0 : (marker?.offset ?? token.offset));
  }
  if (starts.length !== documents.length) return undefined;
  return starts.map((start, index) => text.slice(start, starts[index + 1] ?? text.length));
}

export type Cut =
  | {
      readonly kind: 'cut';
      readonly document: string;
      /** What is left; undefined: nothing that declares anything. */
      readonly rest: string | undefined;
    }
  | { readonly kind: 'refused'; readonly why: string };

/** Takes the document at `index` out of a text. */
export function cutDocument(text: string, index: number): Cut {
  const byHand: Cut = { kind: 'refused', why: 'move its document by hand: its layout allows no safe cut' };
  const before = valuesOf(text);
  const segments = segmentsOf(text);
  const document = segments?.[index];
  if (before === undefined || segments === undefined || document === undefined) return byHand;
  const others = before.toSpliced(index, 1);
  if (others.every((value) => value === null)) return { kind: 'cut', document: text, rest: undefined };
  const rest = segments.toSpliced(index, 1).join('');
  const safe = isDeepStrictEqual(valuesOf(rest), others) && isDeepStrictEqual(valuesOf(document), [before[index]]);
  return safe ? { kind: 'cut', document, rest } : byHand;
}

/** Puts another document, the only one of its text, in the place of the one at `index`. */
export function replaceDocument(text: string, index: number, document: string): TextEdit {
  const byHand = refused('replace its document by hand: the layout of its file allows no safe edit');
  const before = valuesOf(text);
  const segments = segmentsOf(text);
  const value = valuesOf(document);
  if (before === undefined || segments === undefined || value?.length !== 1) return byHand;
  const last = index === segments.length - 1;
  const closed = document.endsWith('\n') || last ? document : `${document}\n`;
  const opened = index === 0 || /^---(\s|$)/m.test(document) ? closed : `---\n${closed}`;
  const edited = segments.with(index, opened).join('');
  return isDeepStrictEqual(valuesOf(edited), before.with(index, value[0])) ? { kind: 'edited', text: edited } : byHand;
}
