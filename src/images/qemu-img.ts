/**
 * The one place that runs qemu-img: it checks and converts qcow2 files that strangers made.
 *
 * It gets no more than it needs. As root it runs as an unprivileged user without capabilities, on two files that were
 * given to that user in a folder that was not: it can create nothing, and what it left there is opened without following
 * links. Memory, processor time, file size and open files are limited where `prlimit` is there. Formats are always named:
 * qemu-img never probes. An agent that is not root runs it as itself, and so does one on macOS, which has neither tool.
 */
import { constants } from 'node:fs';
import { chmod, chown, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { HostFacts, Runner } from '@eitri/core/contracts';
import { MIB, permanent, retryable } from '@eitri/core/kit';
import { ensureFolder, PASSAGE_FOLDER_MODE } from '../host/atomic-file.js';

export interface QemuImgUser {
  readonly uid: number;
  readonly gid: number;
}

/** `nobody` of nearly every system: it owns nothing. */
export const DEFAULT_QEMU_IMG_USER: QemuImgUser = { uid: 65534, gid: 65534 };

/** Read-only, for the agent alone: guests get clones. */
export const IMAGE_MODE = 0o400;

const CHECK_LIMIT_MS = 10 * 60_000;
const CONVERT_LIMIT_MS = 30 * 60_000;
const ADDRESS_SPACE_BYTES = 4096 * MIB;
const CPU_SECONDS = 3600;
const OPEN_FILES = 256;

/** Exit codes of `qemu-img check`. Leaked clusters (3) waste room and harm nothing. */
const CHECK_OK = new Set([0, 3]);
const CHECK_UNSUPPORTED = 63;

export interface Confinement {
  readonly user: QemuImgUser | undefined;
  readonly prlimit: boolean;
  readonly fileSizeBytes: number;
}

/** The command line of a confined qemu-img. Pure. */
export function confined(confinement: Confinement, args: readonly string[]): readonly [string, ...string[]] {
  const { user, prlimit, fileSizeBytes } = confinement;
  const limits = [
    ['prlimit', '--core=0', `--as=${ADDRESS_SPACE_BYTES}`, `--cpu=${CPU_SECONDS}`],
    [`--nofile=${OPEN_FILES}`, `--fsize=${fileSizeBytes}`, '--'],
  ].flat();
  const drop = (to: QemuImgUser): string[] => [
    ...['setpriv', `--reuid=${to.uid}`, `--regid=${to.gid}`, '--clear-groups'],
    ...['--inh-caps=-all', '--bounding-set=-all', '--no-new-privs', '--'],
  ];
  const [command = 'qemu-img', ...rest] = [
    ...(prlimit ? limits : []),
    ...(user === undefined ? [] : drop(user)),
    'qemu-img',
    ...args,
  ];
  return [command, ...rest];
}

export class QemuImg {
  constructor(
    private readonly runner: Runner,
    private readonly facts: HostFacts,
    private readonly user: QemuImgUser,
  ) {}

  /**
   * Checks a qcow2 file and makes a raw one of it, at `target` with `IMAGE_MODE`, on disk. `source` and the working folder
   * are gone afterwards, also when it fails. `what` names the image in messages.
   */
  async toRaw(
    job: {
      readonly what: string;
      readonly source: string;
      readonly target: string;
      readonly folder: string;
      readonly sizeBytes: number;
    },
    signal: AbortSignal,
  ): Promise<void> {
    const input = join(job.folder, 'source');
    const output = join(job.folder, 'target');
    await rm(job.folder, { recursive: true, force: true });
    try {
      const confinement = await this.confinement(job);
      await ensureFolder(job.folder, PASSAGE_FOLDER_MODE);
      await rename(job.source, input);
      await (await open(output, 'wx', 0o600)).close();
      if (confinement.user !== undefined) {
        await chmod(input, 0o400);
        for (const path of [input, output]) await chown(path, confinement.user.uid, confinement.user.gid);
      }
      await this.check(job.what, input, confinement, signal);
      await this.run(confinement, convertArgs(input, output), CONVERT_LIMIT_MS, [0], signal);
      await this.takeBack(job.what, output, job.sizeBytes);
      await rename(output, job.target);
    } finally {
      await rm(job.folder, { recursive: true, force: true });
      await rm(job.source, { force: true });
    }
  }

  private async check(what: string, path: string, confinement: Confinement, signal: AbortSignal): Promise<void> {
    const args = ['check', '-q', '-f', 'qcow2', path];
    const result = await this.run(confinement, args, CHECK_LIMIT_MS, [0, 1, 2, 3, CHECK_UNSUPPORTED], signal);
    if (CHECK_OK.has(result.exitCode)) return;
    const said = lastLine(result.stderr) ?? lastLine(result.stdout) ?? `exit ${result.exitCode}`;
    if (result.exitCode === CHECK_UNSUPPORTED) {
      throw permanent(`${what} can't be checked by qemu-img: ${said}`, { code: 'ImageUnsupported' });
    }
    // Not permanent by itself: without a digest it may as well be a download that went wrong.
    throw retryable(`${what} is damaged, says qemu-img: ${said}`, { code: 'ImageUnsupported' });
  }

  private async run(
    confinement: Confinement,
    args: readonly string[],
    timeoutMs: number,
    okCodes: readonly number[],
    signal: AbortSignal,
  ): Promise<{ readonly exitCode: number; readonly stdout: string; readonly stderr: string }> {
    const [command, ...rest] = confined(confinement, args);
    // Threads get an arena of address space each: few arenas, so that the limit on it means memory.
    return await this.runner.run({ command, args: rest, timeoutMs, okCodes, env: { MALLOC_ARENA_MAX: '2' } }, signal);
  }

  /** Makes the output ours: through the open file, because its name lay in another user's reach. */
  private async takeBack(what: string, path: string, sizeBytes: number): Promise<void> {
    const own = await stat(dirname(path));
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.nlink !== 1) throw retryable(`${what}: qemu-img left something else than a file`);
      if (stats.size !== sizeBytes) {
        throw retryable(`${what}: qemu-img made ${stats.size} bytes of a disk of ${sizeBytes}`);
      }
      if (this.facts.root) await file.chown(own.uid, own.gid);
      await file.chmod(IMAGE_MODE);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  private async confinement(job: { readonly folder: string; readonly sizeBytes: number }): Promise<Confinement> {
    if ((await this.runner.which('qemu-img')) === undefined) {
      throw permanent(
        'qemu-img is not installed, and qcow2 images are converted by it: install qemu-utils (or qemu-img)',
      );
    }
    const linux = this.facts.os === 'linux';
    const prlimit = linux && (await this.runner.which('prlimit')) !== undefined;
    // Room for what the file system adds; more than the disk is a lie of the header.
    const fileSizeBytes = job.sizeBytes + MIB;
    if (!linux || !this.facts.root) return { user: undefined, prlimit, fileSizeBytes };
    if ((await this.runner.which('setpriv')) === undefined) {
      throw permanent('setpriv is not installed, and root runs qemu-img as another user by it: install util-linux');
    }
    await this.requirePassage(dirname(job.folder));
    return { user: this.user, prlimit, fileSizeBytes };
  }

  /** The other user must get to its two files. Said here, because qemu-img would only say "Permission denied". */
  private async requirePassage(folder: string): Promise<void> {
    for (let at = folder; ; at = dirname(at)) {
      const { mode } = await stat(at);
      if ((mode & 0o001) === 0) {
        throw retryable(
          `qemu-img runs as user ${this.user.uid}, which may not pass through ${at}: let others pass (chmod o+x ${at})`,
        );
      }
      if (dirname(at) === at) return;
    }
  }
}

/** `-W -m 16`: out of order and many at once, which is faster on every disk; `-S` is left at its default: zeros are holes. */
export const convertArgs = (source: string, target: string): readonly string[] => [
  ...['convert', '-f', 'qcow2', '-O', 'raw', '-W', '-m', '16'],
  ...[source, target],
];

function lastLine(text: string): string | undefined {
  const line = text.trim().split('\n').at(-1)?.trim();
  return line === '' ? undefined : line;
}
