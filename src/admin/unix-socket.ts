/**
 * Puts a server's unix socket in its place: with its file mode before anybody can connect, over the socket of an agent
 * that died, and never over one on which somebody answers.
 *
 * It is bound inside a folder that only we may enter, given its mode, and renamed to where it belongs: `listen` followed
 * by `chmod` alone would leave a moment in which everybody may act.
 */
import { chmod, lstat, mkdtemp, readdir, rename, rm, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { HostOs } from '@eitri/core/contracts';
import { EXIT, fitsSocketPath, maxSocketPathBytes, permanent, systemCode, withExitCode } from '@eitri/core/kit';

/** What `mkdtemp` adds. */
const CRADLE_RANDOM = 6;

export interface PlacedSocket {
  /** Removes the socket, unless somebody else's stands there by now. */
  readonly remove: () => Promise<void>;
}

/** Short: a socket's path is bound in it, and its length is bounded. */
const cradlePrefix = (path: string): string => `${dirname(path)}/.${basename(path).slice(0, 1)}`;

/** An agent that was killed while it placed this socket left its folder behind; nobody answers, so nobody needs it. */
async function sweepCradles(path: string): Promise<void> {
  const prefix = basename(cradlePrefix(path));
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(prefix) || name.length !== prefix.length + CRADLE_RANDOM) continue;
    await rm(join(dirname(path), name), { recursive: true, force: true });
  }
}

export async function placeSocket(
  path: string,
  mode: number,
  os: HostOs,
  listen: (path: string) => Promise<unknown>,
): Promise<PlacedSocket> {
  if (!fitsSocketPath(path, os)) {
    throw permanent(
      `the socket ${path} would have ${Buffer.byteLength(path)} bytes in its name, and ${maxSocketPathBytes(os)} is the most that this system takes: choose a shorter --run-dir`,
    );
  }
  await refuseTaken(path);
  await sweepCradles(path);
  // Not `join`, which would take the dot away and make the folder beside the run directory.
  const folder = await mkdtemp(cradlePrefix(path));
  try {
    const born = join(folder, 's');
    await listen(born);
    await chmod(born, mode);
    await rename(born, path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const { ino, dev } = await lstat(path);
  return {
    remove: async () => {
      try {
        const now = await lstat(path);
        if (now.ino === ino && now.dev === dev) await unlink(path);
      } catch (error) {
        if (systemCode(error) !== 'ENOENT') throw error;
      }
    },
  };
}

/**
 * Rejects, permanent, where a socket can't be put: somebody answers on it, or something else stands in its way. Changes
 * nothing.
 */
export async function refuseTaken(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) {
      throw permanent(`${path} is in the way of the agent's socket, and is none: move it away`);
    }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw error;
  }
  if (await answers(path)) {
    throw withExitCode(
      permanent(`another agent answers on ${path}: give this one a --run-dir of its own`),
      EXIT.tryAgain,
    );
  }
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => {
      const code = systemCode(error);
      if (code === 'ECONNREFUSED' || code === 'ENOENT') resolve(false);
      // A full backlog is somebody's too.
      else if (code === 'EAGAIN') resolve(true);
      else reject(error);
    });
  });
