/**
 * How a refused field is told: its path as a person writes it, the value as it was found, and what to write instead.
 *
 * Owns the small schemas' helper (`leaf`, `shape`) and the flattening of zod's issues. Values are shown short, and a
 * field that may hold a secret is never shown.
 */
import { nearest } from '@eitri/core/kit';
import { z } from 'zod';

export type FieldKeys = readonly (string | number)[];

/** Why one field of a document is refused. */
export interface FieldIssue {
  /** `spec.volumes[0].size`; empty: the document as a whole. */
  readonly path: string;
  /** The same path for programs, e.g. to find the line. */
  readonly keys: FieldKeys;
  /** What stands there and what to write instead, without the path. */
  readonly message: string;
}

/** `spec.cpus: 0 is not in 1..256` */
export const issueLine = (issue: FieldIssue): string =>
  issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`;

const SHOWN_CHARS = 48;
/** No field's name is longer; the search for the nearest one costs the product of both lengths. */
const MAX_MEANT_CHARS = 64;
/** Whoever mends these looks again; thousands would drown every other file's. */
const MAX_ISSUES = 10;
// Controls of the terminal, of the line and of the writing direction: JSON leaves some of them as they are.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** A value as it may stand in a message. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a map';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return excerpt(value);
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, SHOWN_CHARS);
}

/** A text, quoted, short, and harmless to a terminal. */
function excerpt(text: string): string {
  const quoted = JSON.stringify(text.slice(0, SHOWN_CHARS)).replace(UNSAFE, escaped);
  return quoted.length <= SHOWN_CHARS && text.length <= SHOWN_CHARS ? quoted : `${quoted.slice(0, SHOWN_CHARS - 2)}…"`;
}

const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;

/** The known name that somebody most likely meant. */
export const meantName = (word: string, known: readonly string[]): string | undefined =>
  word.length <= MAX_MEANT_CHARS ? nearest(word, known) : undefined;

export function pathOf(keys: FieldKeys): string {
  let path = '';
  for (const key of keys) {
    if (typeof key === 'number') path += `[${key.toString()}]`;
    else if (key.length <= SHOWN_CHARS && PLAIN_KEY.test(key)) path += path === '' ? key : `.${key}`;
    else path += `[${excerpt(key)}]`;
  }
  return path;
}

/** What a leaf answers in place of a value. A class of its own: nothing that a manifest holds can be one. */
export class Refusal {
  constructor(readonly refused: string) {}
}

export const refuse = (message: string): Refusal => new Refusal(message);

const isRefusal = (value: unknown): value is Refusal => value instanceof Refusal;

/** A schema of one value: `read` gives what it means or a refusal. `need` says what to write where nothing stands. */
export function leaf<T>(need: string, read: (value: unknown) => T | Refusal): z.ZodType<T> {
  return z.unknown().transform((value, ctx): T => {
    const result =
      value === undefined
        ? refuse(`is missing: write ${need}`)
        : value === null
          ? refuse(`is empty: write ${need}, or remove the line`)
          : read(value);
    if (!isRefusal(result)) return result;
    ctx.issues.push({ code: 'custom', message: result.refused, input: value });
    return z.NEVER;
  });
}

/** More names than this are no help in one line. */
const MAX_LISTED = 6;

/** An object that knows all its fields. */
export function shape<S extends z.core.$ZodLooseShape>(fields: S): z.ZodObject<S, z.core.$strict> {
  const known = Object.keys(fields);
  const want = known.length <= MAX_LISTED ? `a map of ${listOf(known)}` : 'a map of fields';
  return z.strictObject(fields, {
    error: (issue) => {
      if (issue.code === 'unrecognized_keys') {
        return issue.keys
          .slice(0, MAX_ISSUES)
          .map((key) => unknownField(key, known))
          .join('\n');
      }
      if (issue.input === undefined) return `is missing: write ${want}`;
      if (issue.input === null) return `is empty: write ${want}, or remove the line`;
      // A text in a map's place may be a whole file that is no manifest: of that, nothing is shown.
      return `${typeof issue.input === 'string' ? 'a text' : show(issue.input)} is not ${want}`;
    },
  });
}

/** A list of at most `max` items. */
export const list = <T>(what: string, max: number, item: z.ZodType<T>): z.ZodType<readonly T[]> =>
  atMost(
    what,
    max,
    z.array(item, {
      error: (issue) =>
        issue.input === null
          ? `is empty: write a list of ${what}, or remove the line`
          : `${show(issue.input)} is not a list of ${what}`,
    }),
  );

/** Counts the entries of a list or a map before any of them is looked at. */
export function atMost<T>(what: string, max: number, schema: z.ZodType<T>): z.ZodType<T> {
  const count = (value: unknown): number =>
    typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
  return z
    .unknown()
    .refine((value) => count(value) <= max, {
      error: ({ input }) => `${count(input).toString()} ${what}, where at most ${max.toString()} can be`,
    })
    .pipe(schema);
}

/** A list's items in which no two may share a name; says it at the second one. */
export function distinct<T>(keyOf: (item: T) => string, say: (item: T, firstIndex: number) => string, field?: string) {
  return (items: readonly T[], ctx: z.core.$RefinementCtx<readonly T[]>): void => {
    const seen = new Map<string, number>();
    items.forEach((item, index) => {
      const first = seen.get(keyOf(item));
      if (first === undefined) seen.set(keyOf(item), index);
      else {
        const path = field === undefined ? [index] : [index, field];
        ctx.addIssue({ code: 'custom', message: say(item, first), path });
      }
    });
  };
}

function unknownField(key: string, known: readonly string[]): string {
  const meant = meantName(key, known);
  if (meant !== undefined) return `unknown field: did you mean ${meant}?`;
  return known.length <= MAX_LISTED ? `unknown field: here stand ${listOf(known)}` : 'unknown field: remove it';
}

function listOf(words: readonly string[]): string {
  const last = words.at(-1);
  return words.length < 2 || last === undefined ? words.join('') : `${words.slice(0, -1).join(', ')} and ${last}`;
}

/** Zod's issues as ours, in the order of their paths, one for each unknown field; the first of them, and a count. */
export function fieldIssues(error: z.ZodError): readonly FieldIssue[] {
  const issues: FieldIssue[] = [];
  let count = 0;
  const add = (keys: readonly PropertyKey[], message: string): void => {
    if (++count > MAX_ISSUES) return;
    const plain = keys.map((key) => (typeof key === 'symbol' ? String(key) : key));
    issues.push({ path: pathOf(plain), keys: plain, message });
  };
  for (const issue of error.issues) {
    if (issue.code === 'unrecognized_keys') {
      const lines = issue.message.split('\n');
      issue.keys.forEach((key, index) => add([...issue.path, key], lines[index] ?? 'unknown field'));
    } else add(issue.path, issue.message);
  }
  if (count > MAX_ISSUES) {
    issues.push({ path: '', keys: [], message: `and ${(count - MAX_ISSUES).toString()} more: mend these first` });
  }
  return issues;
}
