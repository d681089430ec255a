/**
 * QEMU's own words: `vmm.log`, to which all runs of one guest append.
 *
 * Each boot writes a marker line first, so that a run's words are told from those of the runs before it, also by an agent
 * that was not there. The root cause is looked for in the last run only.
 */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { FILE_MODE } from './guest-files.js';

const MARKER = '--- eitri: run of ';
/** Where one run says more than this, its beginning is not looked at: the cause of an end is near the end. */
const TAIL_BYTES = 64 * 1024;
const MAX_REASON_CHARS = 500;

/** Opens a new run in the log. Called only while no process has it open; how large it gets is the supervisor's. */
export async function markRun(path: string, nowMs: number): Promise<void> {
  const file = await openPlain(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
  try {
    await file.write(`${MARKER}${new Date(nowMs).toISOString()}\n`);
  } finally {
    await file.close();
  }
}

/** The root cause of the last run's end; undefined when there is no log, or nothing in it but noise. */
export async function readFailureReason(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await openPlain(path, constants.O_RDONLY);
  } catch {
    return undefined;
  }
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const { bytesRead } = await file.read(buffer, 0, buffer.length, start);
    return failureReasonOf(buffer.toString('utf8', 0, bytesRead));
  } finally {
    await file.close();
  }
}

/**
 * The log stands in the folder that the VMM's own user may write: a link in its place would have a root agent write to
 * any file of the host, a second name of one likewise, and a FIFO would hang it.
 */
async function openPlain(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, FILE_MODE);
  const facts = await file.stat();
  if (facts.isFile() && facts.nlink === 1) return file;
  await file.close();
  throw new Error(`${path} is not a plain file of its own: remove it`);
}

/** What QEMU says that is not why it ended. */
const NOISE: readonly RegExp[] = [
  /^(warning|info):/i,
  /^Could not access KVM kernel module/,
  /^invalid accelerator/,
  /^(-accel \S+: )?falling back to/i,
  /^terminating on signal/,
  /^module \S+ not found/,
  /^char device redirected to/,
];
const PREFIX = /^(?:\S*\/)?qemu(?:-system-[a-z0-9_]+)?: */;
const MAX_HINT_LINES = 2;

interface Said {
  readonly text: string;
  /** Said by QEMU as a message of its own; what has no prefix continues the message before it. */
  readonly ownMessage: boolean;
}

function said(line: string): Said {
  const own = PREFIX.test(line);
  return {
    text: line
      .replace(PREFIX, '')
      .replace(/^error: /i, '')
      .trim(),
    ownMessage: own,
  };
}

/** Pure part: finds the cause in a log's text, in the part after the last marker. */
export function failureReasonOf(log: string): string | undefined {
  const lines = log.slice(lastRunStart(log)).split(/\r?\n/).map(said);
  const lastRun = lines.filter((line) => line.text !== '' && !NOISE.some((noise) => noise.test(line.text)));
  // An accelerator that gave up prints registers after the one line that says so.
  const internal = lastRun.find((line) => line.text.startsWith('KVM internal error'));
  if (internal !== undefined) return internal.text;
  let at = lastRun.findLastIndex((line) => line.ownMessage);
  if (at < 0) return lastRun.at(-1)?.text.slice(0, MAX_REASON_CHARS);
  // An assertion says where QEMU gave up; the error just before it says why.
  if (lastRun[at]?.text.includes('Assertion') === true && lastRun[at - 1]?.ownMessage === true) {
    return lastRun[at - 1]?.text.slice(0, MAX_REASON_CHARS);
  }
  const parts = [lastRun[at]?.text ?? ''];
  while (parts.length <= MAX_HINT_LINES && lastRun[at + 1]?.ownMessage === false) parts.push(lastRun[++at]?.text ?? '');
  return parts.join(' ').slice(0, MAX_REASON_CHARS);
}

function lastRunStart(log: string): number {
  const marker = log.lastIndexOf(MARKER);
  if (marker < 0) return 0;
  const end = log.indexOf('\n', marker);
  return end < 0 ? log.length : end + 1;
}
