/**
 * What stands in the image folder: `<algorithm>-<hex>.raw`, named by the digest of the source's bytes, and beside each a
 * `.json` that says where it came from and when it was last used.
 *
 * An image counts only as a pair whose size fits. The raw file is placed first, its note second; it is removed in the same
 * order. So a crash leaves a half pair, which is nothing, and which the sweep takes away. What a note says that can't be
 * read is nothing either: images can be fetched again.
 */
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageDigest } from '@eitri/core/contracts';
import { stableJson, systemCode } from '@eitri/core/kit';
import { z } from 'zod';
import { isTempName, readIfThere, writeAtomically } from '../host/atomic-file.js';
import type { Validators } from './http-download.js';

const sourceSchema = z.looseObject({
  /** The address; `file:` and the resolved path for a local one. */
  url: z.string(),
  etag: z.string().optional(),
  lastModified: z.string().optional(),
  /** When it was last seen to be this image. */
  at: z.number(),
});

const noteSchema = z.looseObject({
  version: z.literal(1),
  digest: z.object({ algorithm: z.enum(['sha256', 'sha512']), hex: z.string().regex(/^[0-9a-f]{64,128}$/) }),
  format: z.enum(['raw', 'qcow2']),
  /** Of the raw file. */
  sizeBytes: z.number().int().nonnegative(),
  lastUsedAt: z.number(),
  sources: z.array(sourceSchema),
});

export type ImageNote = z.infer<typeof noteSchema>;
export type ImageSighting = z.infer<typeof sourceSchema>;

export interface StoredImage {
  readonly note: ImageNote;
  readonly path: string;
  /** What it takes on disk: a sparse one less than its size. */
  readonly allocatedBytes: number;
}

const PAIR = /^(sha256|sha512)-([0-9a-f]{64,128})\.(raw|json)$/;
/** Of what we make on the way; nothing else of the folder is ours to sweep. */
export const PARTIAL_SUFFIX = '.partial';
export const CONVERT_SUFFIX = '.convert';
/** Enough for every address an image was fetched from. */
const MAX_SOURCES = 16;

export const digestName = ({ algorithm, hex }: ImageDigest): string => `${algorithm}-${hex}`;

export class ImageIndex {
  constructor(readonly folder: string) {}

  rawPath(digest: ImageDigest): string {
    return join(this.folder, `${digestName(digest)}.raw`);
  }

  /** The image of this digest, whole; undefined where there is none. */
  async read(digest: ImageDigest): Promise<StoredImage | undefined> {
    const text = await readIfThere(this.notePath(digest)).catch(() => undefined);
    const note = text === undefined ? undefined : parseNote(text);
    if (note === undefined || digestName(note.digest) !== digestName(digest)) return undefined;
    const path = this.rawPath(digest);
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.isFile() !== true || stats.size !== note.sizeBytes) return undefined;
    return { note, path, allocatedBytes: stats.blocks * 512 };
  }

  /** All whole images, by name. */
  async list(): Promise<readonly StoredImage[]> {
    const images: StoredImage[] = [];
    for (const file of await this.files()) {
      const match = PAIR.exec(file);
      if (match?.[3] !== 'json') continue;
      const [, algorithm, hex = ''] = match;
      const image = await this.read({ algorithm: algorithm === 'sha512' ? 'sha512' : 'sha256', hex });
      if (image !== undefined) images.push(image);
    }
    return images;
  }

  /** The image that an address gave last, and how to ask whether it still does. */
  async findBySource(
    url: string,
  ): Promise<{ readonly image: StoredImage; readonly validators: Validators } | undefined> {
    let newest: { readonly image: StoredImage; readonly origin: ImageSighting } | undefined;
    for (const image of await this.list()) {
      const origin = image.note.sources.find((source) => source.url === url);
      if (origin !== undefined && origin.at >= (newest?.origin.at ?? -Infinity)) newest = { image, origin };
    }
    if (newest === undefined) return undefined;
    const { etag, lastModified } = newest.origin;
    return {
      image: newest.image,
      validators: { ...(etag === undefined ? {} : { etag }), ...(lastModified === undefined ? {} : { lastModified }) },
    };
  }

  /** Writes a note: the origin added or renewed, the use stamped. */
  async note(note: ImageNote, origin: ImageSighting | undefined, now: number): Promise<void> {
    const others = note.sources.filter((source) => source.url !== origin?.url);
    const sources = (origin === undefined ? others : [...others, origin]).slice(-MAX_SOURCES);
    await writeAtomically(this.notePath(note.digest), `${stableJson({ ...note, sources, lastUsedAt: now })}\n`);
  }

  async remove(digest: ImageDigest): Promise<void> {
    await rm(this.rawPath(digest), { force: true });
    await rm(this.notePath(digest), { force: true });
  }

  /** Removes everything of ours that is not a whole image. Only while nothing is in flight. */
  async sweep(): Promise<readonly string[]> {
    const whole = new Set((await this.list()).map((image) => digestName(image.note.digest)));
    const swept: string[] = [];
    for (const file of await this.files()) {
      const pair = PAIR.exec(file);
      const halfPair = pair !== null && !whole.has(`${pair[1] ?? ''}-${pair[2] ?? ''}`);
      if (!halfPair && !isTempName(file) && !file.endsWith(PARTIAL_SUFFIX) && !file.endsWith(CONVERT_SUFFIX)) continue;
      await rm(join(this.folder, file), { recursive: true, force: true });
      swept.push(file);
    }
    return swept;
  }

  private notePath(digest: ImageDigest): string {
    return join(this.folder, `${digestName(digest)}.json`);
  }

  private async files(): Promise<readonly string[]> {
    try {
      return (await readdir(this.folder)).sort();
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return [];
      throw error;
    }
  }
}

function parseNote(text: string): ImageNote | undefined {
  try {
    return noteSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
