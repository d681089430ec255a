/**
 * The files under a console's log: the one adapter between `SerialLog` and this machine's file system, and the only part
 * of it that a test replaces (by a disk that is slow or full).
 */
import { constants } from 'node:fs';
import { open, rename, stat, truncate, type FileHandle } from 'node:fs/promises';
import { systemCode } from '@eitri/core/kit';

/** A guest prints secrets (first passwords, tokens): its log is the agent's alone. */
const LOG_MODE = 0o600;
const OTHERS_BITS = 0o077;
const LINE_FEED = 0x0a;

/** A log file that is open to be appended to. */
export interface LogFile {
  /** Its size when it was opened. */
  readonly sizeBytes: number;
  /** Whether what stood in it when it was opened is empty or ends with a line feed. */
  readonly endsLine: boolean;
  /** Appends; resolves with the number of bytes that went in, which a full disk makes fewer. */
  readonly append: (bytes: Uint8Array) => Promise<number>;
  readonly close: () => Promise<void>;
}

export interface LogFiles {
  /** Opens the file to append, and makes it where it is missing. */
  readonly open: (path: string) => Promise<LogFile>;
  /** Makes the file its predecessor, in place of the one before; no longer than `limitBytes`, whoever made it so long. */
  readonly rotate: (path: string, limitBytes: number) => Promise<void>;
  /** The newest bytes of the log, over both files. Nothing where there is no log. */
  readonly readEnd: (path: string, maxBytes: number) => Promise<Buffer>;
}

/** Where the older half of a log stands. */
export const rotatedPath = (path: string): string => `${path}.1`;

const APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

export const nodeLogFiles: LogFiles = {
  open: async (path) => {
    const handle = await open(path, APPEND, LOG_MODE);
    try {
      const { size, mode } = await handle.stat();
      if ((mode & OTHERS_BITS) !== 0) await handle.chmod(LOG_MODE);
      const last = size === 0 ? undefined : (await readAt(handle, size - 1, 1))[0];
      return {
        sizeBytes: size,
        endsLine: last === undefined || last === LINE_FEED,
        append: async (bytes) => (await handle.write(bytes, 0, bytes.length)).bytesWritten,
        close: () => handle.close(),
      };
    } catch (error) {
      await handle.close();
      throw error;
    }
  },

  rotate: async (path, limitBytes) => {
    const older = rotatedPath(path);
    await rename(path, older);
    if ((await stat(older)).size > limitBytes) await truncate(older, limitBytes);
  },

  readEnd: async (path, maxBytes) => {
    const newest = await endOf(path, maxBytes);
    if (newest.length >= maxBytes) return newest;
    return Buffer.concat([await endOf(rotatedPath(path), maxBytes - newest.length), newest]);
  },
};

async function endOf(path: string, maxBytes: number): Promise<Buffer> {
  let handle: FileHandle;
  try {
    handle = await open(path, 'r');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const { size } = await handle.stat();
    const count = Math.min(size, maxBytes);
    return await readAt(handle, size - count, count);
  } finally {
    await handle.close();
  }
}

async function readAt(handle: FileHandle, position: number, count: number): Promise<Buffer> {
  const buffer = Buffer.alloc(count);
  let filled = 0;
  while (filled < count) {
    const { bytesRead } = await handle.read(buffer, filled, count - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
