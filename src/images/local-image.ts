/**
 * Images that are files of this host: `file:` addresses and catalog names.
 *
 * A manifest must not make a guest's disk of a file that its author could not read: only regular files are taken that
 * belong to root or to the agent's own user, or that stand below the image folder. Links are resolved first, and what was
 * judged is what is read: the open file, not its name.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, realpath } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nearest, permanent, retryable, systemCode, told } from '@eitri/core/kit';
import type { PartialFile } from './partial-file.js';

export interface LocalImagePolicy {
  /** `--image-dir`: holds the catalog, and any file below it may be an image. */
  readonly imageDir: string | undefined;
  /** The agent's own user. */
  readonly uid: number;
}

export interface LocalImage {
  readonly path: string;
  /** Changes when the file does. */
  readonly identity: string;
  readonly sizeBytes: number;
  readonly file: FileHandle;
}

const CATALOG_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const CATALOG_SUFFIXES = ['.raw', '.qcow2', '.img'];
const MAX_LISTED = 20;
const READ_BYTES = 2 ** 20;

/** The path that a `file:` address names. */
export function pathOfFileUrl(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw permanent(`${JSON.stringify(url)} names no file of this host: write file:///path`, {
      cause,
      code: 'SpecInvalid',
    });
  }
}

/** The path of a catalog image: `<imageDir>/<name>.{raw,qcow2,img}`. */
export async function pathOfCatalogName(name: string, imageDir: string | undefined): Promise<string> {
  const missing = (why: string): Error =>
    permanent(`there is no image ${JSON.stringify(name)}: ${why}`, { code: 'ImageNotFound' });
  if (imageDir === undefined) throw missing('this host has no catalog (--image-dir names its folder)');
  if (!CATALOG_NAME.test(name))
    throw missing('a name in the catalog has letters, digits, dot, underscore and hyphen only');
  const files = await readdir(imageDir).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') throw missing(`the catalog ${imageDir} is not there`);
    throw retryable(`read the catalog ${imageDir}`, { cause });
  });
  for (const suffix of CATALOG_SUFFIXES) {
    if (files.includes(name + suffix)) return join(imageDir, name + suffix);
  }
  const known = [...new Set(files.flatMap(catalogName))].sort();
  if (known.length === 0) throw missing(`the catalog ${imageDir} is empty`);
  const meant = nearest(name, known);
  const more = known.length > MAX_LISTED ? `, and ${known.length - MAX_LISTED} more` : '';
  throw missing(
    `${meant === undefined ? '' : `did you mean ${meant}? `}the catalog ${imageDir} has ${known.slice(0, MAX_LISTED).join(', ')}${more}`,
  );
}

function catalogName(file: string): readonly string[] {
  const suffix = CATALOG_SUFFIXES.find((s) => file.endsWith(s));
  const name = suffix === undefined ? '' : file.slice(0, -suffix.length);
  return CATALOG_NAME.test(name) ? [name] : [];
}

/** Opens a local image, judged. The caller closes `file`. */
export async function openLocalImage(path: string, policy: LocalImagePolicy): Promise<LocalImage> {
  const refuse = (why: string, cause?: unknown): Error =>
    permanent(`the image file ${path} ${why}`, { code: 'ImageNotFound', cause });
  const real = await realpath(path).catch((cause: unknown) => {
    if (!['ENOENT', 'ENOTDIR'].includes(systemCode(cause) ?? '')) throw refuse("can't be reached", cause);
    throw told(refuse('is not there: put it there, or correct the manifest', cause));
  });
  // NONBLOCK: opening a FIFO would wait for its writer.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(real, flags).catch((cause: unknown) => {
    throw refuse("can't be opened", cause);
  });
  try {
    const stats = await file.stat({ bigint: true });
    if (!stats.isFile()) throw refuse('is no regular file');
    const owned = stats.uid === 0n || stats.uid === BigInt(policy.uid);
    if (!owned && !(await standsBelow(real, policy.imageDir))) {
      throw refuse(
        `belongs to user ${stats.uid}: an image must belong to root or to the agent's user, or stand below --image-dir`,
      );
    }
    const identity = [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join('-');
    return { path: real, identity, sizeBytes: Number(stats.size), file };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function standsBelow(real: string, folder: string | undefined): Promise<boolean> {
  if (folder === undefined) return false;
  const base = await realpath(folder).catch(() => undefined);
  if (base === undefined) return false;
  const way = relative(base, real);
  return way !== '' && way !== '..' && !way.startsWith('../');
}

/** Copies an opened image. Retryable when it changed meanwhile: the copy is then of no one state of it. */
export async function copyLocalImage(
  image: LocalImage,
  to: PartialFile,
  onProgress: (doneBytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  await to.reset();
  const buffer = Buffer.alloc(READ_BYTES);
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await image.file.read(buffer, 0, buffer.length, to.doneBytes);
    if (bytesRead === 0) break;
    await to.append(buffer.subarray(0, bytesRead));
    onProgress(to.doneBytes);
  }
  const { size, mtimeNs } = await image.file.stat({ bigint: true });
  if (size !== BigInt(to.doneBytes) || !image.identity.includes(`-${size}-${mtimeNs}-`)) {
    throw retryable(`the image file ${image.path} changed while it was read`);
  }
}
