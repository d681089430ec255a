/**
 * The agent's own lines in a guest's log, and what they say to the next agent: where the guest's present boot begins. Pure.
 *
 * A guest that prints such a line itself shortens what its viewers are shown of its past, and nothing else.
 */
export const LINE_FEED = 0x0a;

const LINE_START = '--- eitri: ';
const BOOTED = 'console opened at ';
const GAP = 'output in between may be missing';

/** A pump of a guest that boots; also of one that is booted already, where the start could not find that out. */
export const bootNote = (at: string): string => `${BOOTED}${at}, ${GAP}`;
/** The agent came anew beside a guest that runs. */
export const reopenNote = (at: string): string => `console reopened at ${at}, ${GAP}`;
/** The line was lost and found again by one pump. */
export const reconnectNote = (at: string): string => `console reconnected at ${at}, ${GAP}`;

/** A line of the agent's own. `endsLine`: what stands before it is empty or ends with a line feed. */
export function noteLine(text: string, endsLine: boolean): Buffer {
  return Buffer.from(`${endsLine ? '' : '\n'}${LINE_START}${text} ---\n`);
}

/** What of the end of a log was printed since the guest's power-on. */
export function sinceBoot(logged: Buffer): Buffer {
  const mark = Buffer.from(`${LINE_START}${BOOTED}`);
  for (let at = logged.lastIndexOf(mark); at >= 0; at = at === 0 ? -1 : logged.lastIndexOf(mark, at - 1)) {
    if (at > 0 && logged[at - 1] !== LINE_FEED) continue;
    const end = logged.indexOf(LINE_FEED, at);
    return end < 0 ? Buffer.alloc(0) : logged.subarray(end + 1);
  }
  return logged;
}
