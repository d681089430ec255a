/**
 * One agent a state directory, and one a run directory: a lock of the operating system on a file `lock` in each, which the
 * kernel takes back when the process dies, however it dies. The file's content, the holder's pid, is for people; the file itself stays for ever,
 * since a lock on a file that was replaced is a lock on nothing.
 *
 * Children do not inherit it: Node opens every file close-on-exec. Held by test/integration/state/folder-lock.test.ts.
 */
import { closeSync, constants, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { tryLock, unlock } from 'fs-native-extensions';
import { EXIT, permanent, retryable, systemCode, withExitCode } from '@eitri/core/kit';
import { PRIVATE_FILE_MODE } from '../host/atomic-file.js';
import { stateWriteError } from './state-error.js';

const LONGEST_PID_TEXT = 32;
const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

/** What is locked, as the operator calls it. */
export interface LockedFolder {
  readonly kind: 'state' | 'run';
  readonly path: string;
}

export class FolderLock {
  private fd: number | undefined;

  private constructor(fd: number) {
    this.fd = fd;
  }

  /** Throws when another agent has it: retryable, with that agent's pid and an exit code (`exitCodeOf`). */
  static acquire(path: string, folder: LockedFolder, pid: number): FolderLock {
    let fd: number;
    try {
      // A descriptor and not a FileHandle: one that nobody refers to any more is closed by the collector, lock and all.
      fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, PRIVATE_FILE_MODE);
    } catch (cause) {
      throw stateWriteError('open the lock', path, cause);
    }
    try {
      if (!lock(fd, path, folder)) throw busy(fd, folder);
      // What an earlier holder wrote goes first: a longer pid must not shine through a shorter one.
      ftruncateSync(fd, 0);
      writePid(fd, path, pid);
      return new FolderLock(fd);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Idempotent. */
  release(): void {
    if (this.fd === undefined) return;
    const fd = this.fd;
    this.fd = undefined;
    unlock(fd);
    closeSync(fd);
  }
}

function lock(fd: number, path: string, { kind }: LockedFolder): boolean {
  try {
    return tryLock(fd);
  } catch (cause) {
    throw permanent(`lock ${path}: its file system has no locks: give a --${kind}-dir on a local disk`, { cause });
  }
}

/** On a full disk the lock is held all the same: guests need their agent then as ever, and the pid is only shown. */
function writePid(fd: number, path: string, pid: number): void {
  try {
    writeSync(fd, `${pid}\n`, 0);
    fsyncSync(fd);
  } catch (cause) {
    if (FULL.has(systemCode(cause) ?? '')) return;
    throw stateWriteError('write the pid into the lock', path, cause);
  }
}

function busy(fd: number, { kind, path }: LockedFolder): Error {
  const buffer = Buffer.alloc(LONGEST_PID_TEXT);
  const text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0)).trim();
  // Between its lock and its first write it has no pid yet.
  const who = /^\d+$/.test(text) ? `another agent (pid ${text})` : 'another agent';
  return withExitCode(
    retryable(`${who} uses the ${kind} directory ${path}: stop it, or give another --${kind}-dir`),
    EXIT.tryAgain,
  );
}
