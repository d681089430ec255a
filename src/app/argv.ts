/**
 * Turns what an operator typed into what oclif understands. oclif has no default command, wants the command before
 * its flags, and two dashes before a long name; `eitri-agent`, `eitri-agent --state-dir x join BLOB` and
 * `eitri-agent -state-dir x` are all promised to work. Pure: no process, no oclif. It never judges a command line:
 * whatever is wrong with one stays in it, for oclif to name.
 * Held by test/unit/app/argv.test.ts.
 */

export interface ArgvFacts {
  /** First word of each command, alias and topic: `run`, `join`, `vm`. */
  readonly knownCommands: ReadonlySet<string>;
  /** Long names, without dashes, of the flags that take no value (`no-x` too where a flag can be negated). */
  readonly booleanFlags: ReadonlySet<string>;
  /** Long names, without dashes, of the flags that take one. */
  readonly valueFlags: ReadonlySet<string>;
}

/** The part of an oclif command that the rewriting needs; the manifest's commands have this shape. */
export interface CommandShape {
  readonly id: string;
  readonly aliases?: readonly string[];
  readonly flags: Readonly<
    Record<string, { readonly name: string; readonly type: 'boolean' | 'option'; readonly allowNo?: boolean }>
  >;
}

const DEFAULT_COMMAND = 'run';
const PASSED_THROUGH = new Set(['-h', '--help', '--version', 'help']);
const GO_LONG_FLAG = /^-([a-z][a-z0-9-]+)(=.*)?$/s;
const GO_TRUE = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const GO_FALSE = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

export function collectArgvFacts(commands: Iterable<CommandShape>): ArgvFacts {
  const knownCommands = new Set<string>();
  const booleanFlags = new Set<string>();
  const valueFlags = new Set<string>();
  // The default command comes first: where two commands give one name two kinds, a leading flag means its kind.
  const inOrder = [...commands].sort((a, b) => Number(b.id === DEFAULT_COMMAND) - Number(a.id === DEFAULT_COMMAND));
  for (const command of inOrder) {
    for (const id of [command.id, ...(command.aliases ?? [])]) {
      const [word] = id.split(/[: ]/);
      if (word !== undefined && word !== '') knownCommands.add(word);
    }
    for (const flag of Object.values(command.flags)) {
      if (booleanFlags.has(flag.name) || valueFlags.has(flag.name)) continue;
      if (flag.type === 'option') {
        valueFlags.add(flag.name);
      } else {
        booleanFlags.add(flag.name);
        if (flag.allowNo === true) booleanFlags.add(`no-${flag.name}`);
      }
    }
  }
  return { knownCommands, booleanFlags, valueFlags };
}

export function rewriteArgv(
  args: readonly string[],
  knownCommands: ReadonlySet<string>,
  booleanFlags: ReadonlySet<string>,
  valueFlags: ReadonlySet<string>,
): string[] {
  const facts: ArgvFacts = { knownCommands, booleanFlags, valueFlags };
  const words = normaliseFlags(args, facts);
  const [first] = words;
  if (first !== undefined && PASSED_THROUGH.has(first)) return words;
  const commandAt = findCommandWord(words, facts);
  if (commandAt === undefined) return [DEFAULT_COMMAND, ...words];
  const leading = words.slice(0, commandAt);
  const rest = words.slice(commandAt);
  const end = rest.indexOf('--');
  return end === -1 ? [...rest, ...leading] : [...rest.slice(0, end), ...leading, ...rest.slice(end)];
}

/** Go's spellings, made oclif's: one dash before a known long name; `=true` and `=false` on a flag without value. */
function normaliseFlags(args: readonly string[], facts: ArgvFacts): string[] {
  const words: string[] = [];
  let takesNext = false;
  for (const [at, arg] of args.entries()) {
    if (takesNext) {
      // A value is the operator's own: `--hostname -force` must not turn into a flag here.
      words.push(arg);
      takesNext = false;
      continue;
    }
    if (arg === '--') return [...words, ...args.slice(at)];
    const word = withTwoDashes(arg, facts);
    const plain = withoutBooleanValue(word, facts);
    if (plain === undefined) continue;
    words.push(plain);
    takesNext = plain.startsWith('--') && facts.valueFlags.has(plain.slice(2));
  }
  return words;
}

function withTwoDashes(arg: string, facts: ArgvFacts): string {
  const name = GO_LONG_FLAG.exec(arg)?.[1];
  if (name === undefined) return arg;
  const known = name === 'help' || name === 'version' || facts.booleanFlags.has(name) || facts.valueFlags.has(name);
  // Anything else may be a bundle of short flags, `-fq`.
  return known ? `-${arg}` : arg;
}

/** `undefined`: the flag says no more than its absence, so it goes. */
function withoutBooleanValue(word: string, facts: ArgvFacts): string | undefined {
  const equals = word.indexOf('=');
  if (!word.startsWith('--') || equals === -1) return word;
  const name = word.slice(2, equals);
  const value = word.slice(equals + 1);
  if (!facts.booleanFlags.has(name)) return word;
  if (GO_TRUE.has(value)) return `--${name}`;
  if (GO_FALSE.has(value)) return facts.booleanFlags.has(`no-${name}`) ? `--no-${name}` : undefined;
  return word;
}

/** The place of the first word that is neither a flag nor a flag's value; it may be an unknown command. */
function findCommandWord(words: readonly string[], facts: ArgvFacts): number | undefined {
  let at = 0;
  for (;;) {
    const word = words[at];
    if (word === undefined || word === '--') return undefined;
    if (!word.startsWith('-') || word === '-') return at;
    at += takesNextWord(word, words[at + 1], facts) ? 2 : 1;
  }
}

function takesNextWord(word: string, next: string | undefined, facts: ArgvFacts): boolean {
  if (next === undefined || !word.startsWith('--') || word.includes('=')) return false;
  const name = word.slice(2);
  if (facts.valueFlags.has(name)) return true;
  if (facts.booleanFlags.has(name)) return false;
  // A mistyped flag: hide its value from the command search, so that oclif's complaint is about the flag.
  return !next.startsWith('-') && !facts.knownCommands.has(next);
}
