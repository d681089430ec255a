/**
 * Words of guests and tools, made fit to be shown: nothing of them may steer a terminal, or turn a line round.
 */

/** Control characters, and those by which a text is shown in another order than it stands. */
// eslint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g;
/** Colours, cursor moves, titles: whole sequences, also one that the text's end cut off. */
// eslint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

/** The text as one line in which nothing steers the terminal. */
export const harmless = (text: string): string => text.replace(STEERING, ' ');

/**
 * The last lines of a log as a person would have seen them: without colours and cursor moves, of a line that was drawn
 * again and again only the last state, empty lines left out.
 */
export function lastLogLines(
  text: string,
  most: { readonly lines: number; readonly chars: number },
): readonly string[] {
  const lines = text
    .replace(ESCAPES, '')
    .split('\n')
    .map((line) => harmless(line.replace(/\r+$/, '').split('\r').at(-1) ?? '').trimEnd())
    .filter((line) => line !== '');
  return lines
    .slice(-most.lines)
    .map((line) => (line.length > most.chars ? `${line.slice(0, most.chars - 1)}…` : line));
}
