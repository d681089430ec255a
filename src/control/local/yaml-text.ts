/**
 * The one way from text to YAML here, for reading and for editing: bounded work whatever somebody wrote, and what is
 * wrong in words of our own.
 *
 * The parser is fed piece by piece and left at the first bound that is passed, so a file costs no more than its size,
 * and little of that. The library's own check for keys that stand twice compares each with each: the one here counts.
 * No message holds what stands in the text: a file may be one that its reader was never meant to see.
 */
import {
  Composer,
  CST,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  type Document,
  type ErrorCode,
  type YAMLError,
} from 'yaml';

export type YamlDocument = Document.Parsed;

export interface LineIssue {
  readonly line?: number;
  readonly field?: string;
  readonly message: string;
}

export type YamlText =
  | {
      readonly kind: 'documents';
      readonly documents: readonly YamlDocument[];
      readonly lineAt: (offset: number) => number;
    }
  | { readonly kind: 'broken'; readonly issues: readonly LineIssue[] };

/** More of one kind in one document, or file, are no help to whoever mends the first. */
const MAX_ISSUES = 10;
const MAX_DOCUMENTS = 1000;
/** Manifests nest five deep; each level costs the stack several calls, and 64 leave it room. */
const MAX_DEPTH = 64;
/** Words, marks, blanks: a manifest has about a hundred, and a hundred thousand take half a second. */
const MAX_PIECES = 200_000;
/** Aliases in a file, and what they may expand to in a document: more are an attack on memory, not a manifest. */
const MAX_ALIASES = 100;

/** Depth in the parser's stack of two levels more than that of the values: a document and the word itself. */
const STACK_BASE = 2;

export function yamlText(text: string): YamlText {
  const lines = new LineCounter();
  const lineAt = (offset: number): number => lines.linePos(offset).line;
  const broken = (message: string, line?: number): YamlText => ({
    kind: 'broken',
    issues: [{ ...(line !== undefined && { line }), message }],
  });
  const documents: YamlDocument[] = [];
  // Known tags (!!set, !!omap) have checks of their own that compare each with each.
  const composer = new Composer({
    merge: true,
    uniqueKeys: false,
    logLevel: 'silent',
    schema: 'core',
    resolveKnownTags: false,
  });
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let pieces = 0;
  let aliases = 0;
  let last = '';
  for (const piece of new Lexer().lex(text)) {
    if (++pieces > MAX_PIECES) return broken('holds far more than manifests do: split it', lineAt(parser.offset));
    // After the mark of a scalar comes its text, which may begin with anything.
    if (last !== CST.SCALAR && CST.tokenType(piece) === 'alias' && ++aliases > MAX_ALIASES) {
      return broken(`has more than ${MAX_ALIASES} aliases: write the values out`, lineAt(parser.offset));
    }
    last = piece;
    for (const token of parser.next(piece)) documents.push(...composer.next(token));
    if (parser.stack.length > MAX_DEPTH + STACK_BASE) {
      return broken(`nests deeper than ${MAX_DEPTH} levels: is a bracket missing?`, lineAt(parser.offset));
    }
    if (documents.length > MAX_DOCUMENTS) return broken(`has more than ${MAX_DOCUMENTS} documents: split it`);
  }
  for (const token of parser.end()) documents.push(...composer.next(token));
  documents.push(...composer.end(false, text.length));
  if (documents.length > MAX_DOCUMENTS) return broken(`has more than ${MAX_DOCUMENTS} documents: split it`);
  // What comes after the first is mostly its consequence.
  const [error] = documents.flatMap((document) => [...document.errors, ...document.warnings]);
  if (error !== undefined) return broken(syntaxWords(error), lineAt(error.pos[0]));
  const issues = documents.flatMap((document) => keyIssues(document, lineAt));
  return issues.length > 0
    ? { kind: 'broken', issues: capped(issues, MAX_ISSUES) }
    : { kind: 'documents', documents, lineAt };
}

/** What a document says. Throws where its aliases or merges can't be followed. */
export function plainValue(document: YamlDocument): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (cause) {
    throw new Error('has aliases (*name) or merges (<<) that expand too far or lead nowhere: write the values out', {
      cause,
    });
  }
}

/** The first of them, and how many more there are. */
function capped<T extends LineIssue>(issues: readonly T[], max: number): readonly (T | LineIssue)[] {
  if (issues.length <= max) return issues;
  return [...issues.slice(0, max), { message: `and ${issues.length - max} more: mend these first` }];
}

/** Keys that are no plain words, or stand twice in one map. Of two the later would win in silence. */
function keyIssues(document: YamlDocument, lineAt: (offset: number) => number): LineIssue[] {
  const issues: LineIssue[] = [];
  const pending: unknown[] = [document.contents];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (isPair(node)) pending.push(node.value ?? undefined);
    if (!isCollection(node)) continue;
    const seen = new Map<string, number>();
    for (const item of isMap(node) ? node.items : []) {
      const { key } = item;
      const line = lineAt((isNode(key) ? key.range?.[0] : undefined) ?? node.range?.[0] ?? 0);
      if (!isScalar(key))
        issues.push({ line, message: 'a list, map or alias stands where a field’s name should: write its name' });
      // `<<`, which may come more than once.
      else if (typeof key.value !== 'symbol') {
        const name = String(key.value);
        const first = seen.get(name);
        if (first === undefined) seen.set(name, line);
        else issues.push({ line, message: `this field stands in line ${first} already, and must be unique: keep one` });
      }
    }
    // Not spread: a hundred thousand items are more arguments than a call takes.
    for (const item of node.items) pending.push(item);
  }
  return issues;
}

/** The library's words are for people who write parsers, and some of them repeat the text. */
function syntaxWords(error: YAMLError): string {
  return `is not YAML here: ${SYNTAX[error.code] ?? 'look at this line and the one above for a missing quote, colon or bracket'}`;
}

const INDENT = 'indent this line like its neighbours, and what belongs to a field deeper than it';
const SYNTAX: Partial<Record<ErrorCode, string>> = {
  BAD_INDENT: INDENT,
  TAB_AS_INDENT: 'a tab indents it: use blanks',
  BLOCK_AS_IMPLICIT_KEY: INDENT,
  BLOCK_IN_FLOW: 'a bracket or brace above is not closed',
  BAD_SCALAR_START: 'a text that begins with this mark needs quotes',
  BAD_DQ_ESCAPE: 'a backslash in double quotes begins an escape: use single quotes, or write two',
  MULTILINE_IMPLICIT_KEY: 'a colon is missing, or a quote or bracket is not closed',
  MISSING_CHAR: 'a colon, comma, closing quote or bracket is missing',
  TAG_RESOLVE_FAILED: 'a tag (!word) is not known: quote the text, or remove the tag',
  BAD_ALIAS: 'a text that begins with * or & needs quotes, and an alias its anchor before it',
};
