/**
 * Answers that go on: the event stream, and logs that are followed. Each costs the agent a bounded amount of memory,
 * whatever its reader does, and ends when the reader leaves or the agent closes.
 */
import { constants } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { AgentEvent, Clock } from '@eitri/core/contracts';
import { KIB, MIB, systemCode } from '@eitri/core/kit';
import { eventView } from '@eitri/protocol';
import type { AgentView } from './ports.js';

/** An empty line this often shows the reader that the agent lives. */
export const HEARTBEAT_MS = 15_000;
/** How far a reader of events may fall behind before it is let go. */
const LAG_BYTES = MIB;
/** Further behind than this, it is spared the news of progress. */
const CALM_BYTES = 64 * KIB;
const LOG_POLL_MS = 200;
const READ_BYTES = 64 * KIB;

/** Aborted when the reader leaves, or `closing` is. */
export function whileReading(raw: ServerResponse, closing: AbortSignal): { signal: AbortSignal; done: () => void } {
  const over = new AbortController();
  const leave = (): void => {
    over.abort(new Error('the reader left'));
  };
  raw.once('close', leave);
  // A reader that resets its connection is one that left.
  raw.on('error', leave);
  closing.addEventListener('abort', leave, { once: true });
  if (closing.aborted || raw.destroyed) leave();
  return {
    signal: over.signal,
    done: () => {
      closing.removeEventListener('abort', leave);
    },
  };
}

export interface EventsQuery {
  readonly since: number;
  /** Undefined: everything, also what concerns no VM. */
  readonly concerns: ((event: AgentEvent) => boolean) | undefined;
  readonly follow: boolean;
}

export async function streamEvents(
  raw: ServerResponse,
  agent: AgentView,
  query: EventsQuery,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const send = (event: AgentEvent): void => {
    if (query.concerns?.(event) === false) return;
    if (event.progress !== undefined && raw.writableLength > CALM_BYTES) return;
    if (raw.writableLength > LAG_BYTES) raw.destroy();
    else raw.write(`${JSON.stringify(eventView(event))}\n`);
  };
  for (const event of agent.eventsSince(query.since)) send(event);
  if (!query.follow) return;
  const leave = agent.onEvent(send);
  try {
    for (;;) {
      await clock.sleep(HEARTBEAT_MS, signal);
      if (raw.writableLength <= LAG_BYTES) raw.write('\n');
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    leave();
  }
}

export interface LogQuery {
  readonly tailBytes: number;
  /** Absent: as many as the bytes hold. */
  readonly lines: number | undefined;
  readonly follow: boolean;
}

/**
 * The end of a log, over its predecessor `<path>.1` too, then what is added. A log that is not there is empty. A rotated
 * one is read to its end before its successor is.
 */
export async function streamLog(
  raw: ServerResponse,
  path: string,
  query: LogQuery,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let file = await openLog(path);
  try {
    let position = (await file?.stat())?.size ?? 0;
    await write(raw, await endOf(path, file, position, query), signal);
    while (query.follow && !signal.aborted) {
      const added = await copyFrom(raw, file, position, signal);
      position += added;
      if (added > 0) continue;
      const place = await look(path, file, position);
      if (place === 'same') {
        await clock.sleep(LOG_POLL_MS, signal).catch(() => undefined);
        continue;
      }
      if (place === 'gone' && file !== undefined) return;
      // What was written between the last read and the rotation still stands in the old file.
      position += await copyFrom(raw, file, position, signal);
      await file?.close();
      file = await openLog(path);
      position = 0;
      if (file === undefined) await clock.sleep(LOG_POLL_MS, signal).catch(() => undefined);
    }
  } finally {
    await file?.close();
  }
}

/** The end of a log, over its predecessor `<path>.1` too; empty where there is none. */
export async function readLogEnd(path: string, query: Omit<LogQuery, 'follow'>): Promise<Buffer> {
  const file = await openLog(path);
  try {
    return await endOf(path, file, (await file?.stat())?.size ?? 0, query);
  } finally {
    await file?.close();
  }
}

/**
 * The VMM's log lies where its own user may write: a link in its place would have a root agent show any file of the host,
 * and a FIFO would hang it.
 */
async function openLog(path: string): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    if (systemCode(error) === 'ELOOP') throw new Error(`a link stands at ${path}: remove it`, { cause: error });
    throw error;
  }
  const facts = await file.stat();
  if (facts.isFile() && facts.nlink <= 1) return file;
  await file.close();
  throw new Error(`${path} is not a plain file of its own: remove it`);
}

async function endOf(
  path: string,
  file: FileHandle | undefined,
  size: number,
  { tailBytes, lines }: Omit<LogQuery, 'follow'>,
): Promise<Buffer> {
  let end = file === undefined ? Buffer.alloc(0) : await lastBytes(file, size, tailBytes);
  if (end.length < tailBytes) {
    const older = await openLog(`${path}.1`);
    try {
      if (older !== undefined) {
        const { size: olderSize } = await older.stat();
        end = Buffer.concat([await lastBytes(older, olderSize, tailBytes - end.length), end]);
      }
    } finally {
      await older?.close();
    }
  }
  return lines === undefined ? end : lastLines(end, lines);
}

async function lastBytes(file: FileHandle, size: number, most: number): Promise<Buffer> {
  const length = Math.min(size, most);
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, size - length + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

const LINE_FEED = 0x0a;

/** The last `count` lines; a last one without its line feed is one too. */
export function lastLines(bytes: Buffer, count: number): Buffer {
  if (count <= 0) return Buffer.alloc(0);
  // Where the last line ends, without its own line feed.
  let at = bytes.at(-1) === LINE_FEED ? bytes.length - 1 : bytes.length;
  for (let seen = 0; seen < count; seen++) {
    // A negative offset would count from the end.
    const before = at === 0 ? -1 : bytes.lastIndexOf(LINE_FEED, at - 1);
    if (before === -1) return bytes;
    at = before;
  }
  return bytes.subarray(at + 1);
}

async function copyFrom(
  raw: ServerResponse,
  file: FileHandle | undefined,
  position: number,
  signal: AbortSignal,
): Promise<number> {
  if (file === undefined) return 0;
  const { bytesRead, buffer } = await file.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, position);
  if (bytesRead > 0) await write(raw, buffer.subarray(0, bytesRead), signal);
  return bytesRead;
}

async function look(path: string, file: FileHandle | undefined, position: number): Promise<'same' | 'other' | 'gone'> {
  try {
    const there = await stat(path);
    if (file === undefined) return 'other';
    const mine = await file.stat();
    return there.ino === mine.ino && there.dev === mine.dev && there.size >= position ? 'same' : 'other';
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return file === undefined ? 'other' : 'gone';
    throw error;
  }
}

/** Waits until the reader has taken it: a slow one slows itself down, and nobody else. */
export async function write(raw: ServerResponse, bytes: Buffer, signal: AbortSignal): Promise<void> {
  if (bytes.length === 0 || signal.aborted) return;
  if (raw.write(bytes)) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      raw.off('drain', go);
      signal.removeEventListener('abort', go);
      resolve();
    };
    raw.once('drain', go);
    signal.addEventListener('abort', go, { once: true });
  });
}
