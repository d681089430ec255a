/**
 * What a person sees of an error: one sentence with the next step, broken at 80 columns, and the exit code. Never a stack,
 * unless EITRI_DEBUG asks for it. Pure.
 */
import { errorLine, nearest, exitCodeOf, EXIT } from '@eitri/core/kit';

export interface Complaint {
  /** Absent: nothing is left to say (a command that ended itself). */
  readonly text?: string;
  readonly exitCode: number;
}

export interface ComplaintFacts {
  /** `eitri-agent`. */
  readonly bin: string;
  /** Names of all commands, with spaces: `vm list`. */
  readonly commands: readonly string[];
  /** Long flags, without dashes, of the command that was typed. */
  readonly flags: readonly string[];
  /** The command that was typed, where it is one. */
  readonly command: string | undefined;
  readonly columns: number;
  readonly debug: boolean;
}

export function complain(error: unknown, facts: ComplaintFacts): Complaint {
  const usage = unknownCommand(error) !== undefined || isFlagMisuse(error);
  const exitCode = usage ? EXIT.usage : (exitCodeOf(error) ?? oclifCodeOf(error) ?? EXIT.failed);
  if (isQuietExit(error)) return { exitCode };
  const sentence = `error: ${sentenceOf(error, facts)}`;
  const stack = facts.debug && error instanceof Error ? `\n${error.stack ?? ''}` : '';
  // One line for each thing that is wrong, where a message has several.
  const lines = sentence
    .split('\n')
    .map((line, at) => wrap(line, facts.columns, at === 0 ? '  ' : '    ', at === 0 ? '' : '  '));
  return { text: `${lines.join('\n')}${stack}`, exitCode };
}

/**
 * Breaks at spaces, the first line behind `first`, further ones behind `rest`. A word longer than a line stands alone:
 * paths are there to be copied.
 */
export function wrap(text: string, columns: number, rest = '  ', first = ''): string {
  const lines: string[] = [];
  let line = first;
  let empty = true;
  for (const word of text.split(/\s+/)) {
    if (empty) line += word;
    else if (line.length + 1 + word.length <= columns) line += ` ${word}`;
    else {
      lines.push(line);
      line = rest + word;
    }
    empty = false;
  }
  return [...lines, line].join('\n');
}

function sentenceOf(error: unknown, facts: ComplaintFacts): string {
  const typed = unknownCommand(error);
  if (typed !== undefined) {
    const near = nearest(typed, facts.commands);
    const hint = near === undefined ? '' : ` (did you mean "${near}"?)`;
    return `no such command "${typed}"${hint}: "${facts.bin} help" lists all`;
  }
  const help = `"${[facts.bin, facts.command ?? ''].join(' ').trim()} --help"`;
  const flags = unknownFlags(error);
  if (flags !== undefined) {
    const [first = ''] = flags;
    const near = nearest(first.replace(/^-+/, ''), facts.flags);
    const hint = near === undefined ? '' : ` (did you mean --${near}?)`;
    return `unknown flag ${flags.join(', ')}${hint}: ${help} lists the flags`;
  }
  if (isFlagMisuse(error)) return `${errorLine(error).replace('Flag ', '')}: see ${help}`;
  if (!isParseError(error)) return errorLine(error);
  const pair = /--([\w-]+)=\S* cannot also be provided when using --([\w-]+)/.exec(errorLine(error));
  if (pair !== null) return `--${pair[2] ?? ''} and --${pair[1] ?? ''} exclude each other: remove one, or see ${help}`;
  const missing = missingArguments(error);
  if (missing !== undefined) return `missing ${missing.join(' and ')}: see ${help}`;
  const [line = ''] = errorLine(error)
    .replace(/\nSee more help with --help$/, '')
    .split(/\n(?!\s)/);
  const plain = line
    .replace(/^The following errors? occurred:/, '')
    .replace(/\s+/g, ' ')
    .trim();
  const said = plain.replace(/^Missing required flag (\S+)$/, 'missing --$1');
  return `${said.charAt(0).toLowerCase()}${said.slice(1)}: see ${help}`;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** oclif throws one to end a command with a code and no word. */
const isQuietExit = (error: unknown): boolean => isObject(error) && 'code' in error && error.code === 'EEXIT';

function oclifCodeOf(error: unknown): number | undefined {
  if (!isObject(error) || !('oclif' in error) || !isObject(error.oclif) || !('exit' in error.oclif)) return undefined;
  return typeof error.oclif.exit === 'number' ? error.oclif.exit : undefined;
}

const isParseError = (error: unknown): boolean => isObject(error) && 'parse' in error;

function unknownCommand(error: unknown): string | undefined {
  const match = error instanceof Error ? /^command (.*) not found$/.exec(error.message) : undefined;
  return match?.[1]?.replaceAll(':', ' ');
}

/** oclif knows no code of its own for these. */
const isFlagMisuse = (error: unknown): boolean =>
  error instanceof Error && /^Flag --\S+ (expects a value|can only be specified once)$/.test(error.message);

function unknownFlags(error: unknown): readonly string[] | undefined {
  if (!isParseError(error) || !(error instanceof Error) || !error.message.startsWith('Nonexistent flag'))
    return undefined;
  return 'flags' in error && Array.isArray(error.flags) ? error.flags.map(String) : undefined;
}

function missingArguments(error: unknown): readonly string[] | undefined {
  if (!(error instanceof Error) || !/^Missing \d+ required arg/.test(error.message)) return undefined;
  if (!('args' in error) || !Array.isArray(error.args)) return undefined;
  return error.args.map((arg: unknown) =>
    isObject(arg) && 'name' in arg ? String(arg.name).toUpperCase() : 'an argument',
  );
}
