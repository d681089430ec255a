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
const PLAIN_KEY = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** A value as it may stand in a message. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a map';
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS - 2)}…"`;
}

export function pathOf(keys: FieldKeys): string {
  let path = '';
  for (const key of keys) {
    if (typeof key === 'number') path += `[${key.toString()}]`;
    else if (PLAIN_KEY.test(key)) path += path === '' ? key : `.${key}`;
    else path += `[${JSON.stringify(key)}]`;
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
      if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField(key, known)).join('\n');
      if (issue.input === undefined) return `is missing: write ${want}`;
      if (issue.input === null) return `is empty: write ${want}, or remove the line`;
      return `${show(issue.input)} is not ${want}`;
    },
  });
}

/** A list of at most `max` items. */
export function list<T>(what: string, max: number, item: z.ZodType<T>): z.ZodType<readonly T[]> {
  return z
    .array(item, {
      error: (issue) =>
        issue.input === null
          ? `is empty: write a list of ${what}, or remove the line`
          : `${show(issue.input)} is not a list of ${what}`,
    })
    .superRefine((items, ctx) => {
      if (items.length > max) {
        ctx.addIssue({
          code: 'custom',
          message: `${items.length.toString()} ${what}, where at most ${max.toString()} can be`,
        });
      }
    });
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
  const meant = nearest(key, known);
  if (meant !== undefined) return `unknown field: did you mean ${meant}?`;
  return known.length <= MAX_LISTED ? `unknown field: here stand ${listOf(known)}` : 'unknown field: remove it';
}

function listOf(words: readonly string[]): string {
  const last = words.at(-1);
  return words.length < 2 || last === undefined ? words.join('') : `${words.slice(0, -1).join(', ')} and ${last}`;
}

/** Zod's issues as ours, in the order of their paths, one for each unknown field. */
export function fieldIssues(error: z.ZodError): readonly FieldIssue[] {
  const issues: FieldIssue[] = [];
  const add = (keys: readonly PropertyKey[], message: string): void => {
    const plain = keys.map((key) => (typeof key === 'symbol' ? String(key) : key));
    issues.push({ path: pathOf(plain), keys: plain, message });
  };
  for (const issue of error.issues) {
    if (issue.code === 'unrecognized_keys') {
      const lines = issue.message.split('\n');
      issue.keys.forEach((key, index) => add([...issue.path, key], lines[index] ?? 'unknown field'));
    } else add(issue.path, issue.message);
  }
  return issues;
}
