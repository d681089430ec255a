/**
 * One look at a folder of manifests: its marker, its documents, those that were deleted. Reads only.
 *
 * What can't be looked at as a whole (no folder, no marker, no listing) is `out`: nothing is said about any VM. A file
 * that can't be read or parsed is told as such, and never left out in silence. Order is by name, in bytes.
 */
import type { DesiredIssue } from '@eitri/core/contracts';
import { errorLine, systemCode } from '@eitri/core/kit';
import type { Stats } from 'node:fs';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readBytesIfThere } from '../../host/atomic-file.js';
import {
  MARKER_FILE,
  markerHint,
  readMarker,
  type Accepted,
  type LineageMarker,
  type MarkerReading,
} from './lineage-marker.js';
import { parseText, type ParsedText } from './manifest-text.js';

/** Where deleted documents lie: each is the tombstone of its VM. */
export const DELETED_FOLDER = '.deleted';
export const MANIFEST_NAME = /^[^.].*\.(yaml|yml|json)$/;
const MAX_FILE_BYTES = 2 ** 20;
const MAX_FILES = 20_000;
const MAX_LOOKS = 5;

export interface ManifestFile {
  /** Relative to the folder of manifests: `web.yaml`, `.deleted/web.yaml`. */
  readonly name: string;
  /** Empty where `parsed` is broken for another reason than its text. */
  readonly text: string;
  readonly parsed: ParsedText;
  /** Of the file itself; absent where there is none (a dangling link). */
  readonly stats?: Stats;
  readonly link: boolean;
}

export type FolderReading =
  | {
      readonly kind: 'read';
      readonly marker: LineageMarker;
      readonly files: readonly ManifestFile[];
      readonly deleted: readonly ManifestFile[];
      /** Which folders these are, not only how they are called. */
      readonly identity: string;
    }
  | { readonly kind: 'out'; readonly issue: DesiredIssue };

interface Cached {
  readonly key: string;
  readonly file: ManifestFile;
}

/** What is wrong with a folder whose marker could not be read, and what to do. */
export async function markerTrouble(
  folder: string,
  marker: Exclude<MarkerReading, { readonly kind: 'marker' }>,
  accepted: Accepted | undefined,
): Promise<string> {
  const hint = markerHint(folder, accepted);
  if ((await statOf(folder)) === undefined) {
    return `the folder is not there: give another with --local, mount it, or make it (${hint})`;
  }
  return marker.kind === 'missing'
    ? `it has no ${MARKER_FILE}, so it says nothing about any VM: mount what belongs here, or ${hint}`
    : `its ${MARKER_FILE} can’t be read (${marker.why}): put back a copy of it${accepted === undefined ? '' : `, or ${hint}`}`;
}

/** Looks at one folder again and again, and parses only what changed since the last look. */
export class FolderReader {
  private cache: ReadonlyMap<string, Cached> = new Map();

  constructor(
    private readonly folder: string,
    /** Whose word this host follows: what a lost marker must say again. */
    private readonly accepted: () => Accepted | undefined = () => undefined,
  ) {}

  readonly read = async (signal: AbortSignal): Promise<FolderReading> => {
    const { folder } = this;
    const marker = await readMarker(folder);
    if (marker.kind !== 'marker') return out(folder, await markerTrouble(folder, marker, this.accepted()));
    try {
      for (let look = 0; look < MAX_LOOKS; look++) {
        const names = await this.names();
        const next = new Map<string, Cached>();
        const files = await this.readAll(names.files, next, signal);
        const deleted = await this.readAll(names.deleted, next, signal);
        // A file that is renamed while we look is in no listing, and would read as missing.
        const moved = files === undefined || deleted === undefined || !isDeepStrictEqual(names, await this.names());
        if (moved) continue;
        this.cache = next;
        return { kind: 'read', marker: marker.marker, files, deleted, identity: await this.identity() };
      }
      return out(folder, 'it changes faster than it can be read: it is looked at again');
    } catch (error) {
      signal.throwIfAborted();
      return out(folder, `it can’t be read: ${errorLine(error)}`);
    }
  };

  private async names(): Promise<{ readonly files: readonly string[]; readonly deleted: readonly string[] }> {
    const files = await readdir(this.folder);
    const deleted = (await readdir(join(this.folder, DELETED_FOLDER)).catch(absent)) ?? [];
    if (files.length + deleted.length > MAX_FILES) throw new Error(`more than ${MAX_FILES} files are in it`);
    const manifests = (names: readonly string[]) => names.filter((name) => MANIFEST_NAME.test(name)).toSorted(byBytes);
    return { files: manifests(files), deleted: manifests(deleted).map((name) => join(DELETED_FOLDER, name)) };
  }

  private async identity(): Promise<string> {
    const folders = [this.folder, join(this.folder, DELETED_FOLDER)];
    const facts = await Promise.all(folders.map(statOf));
    return facts.map((fact) => (fact === undefined ? '-' : `${fact.dev}:${fact.ino}`)).join(' ');
  }

  /** Undefined: one of them went away since it was listed. */
  private async readAll(
    names: readonly string[],
    next: Map<string, Cached>,
    signal: AbortSignal,
  ): Promise<readonly ManifestFile[] | undefined> {
    const files: ManifestFile[] = [];
    for (const name of names) {
      signal.throwIfAborted();
      const file = await this.readOne(name, next);
      if (file === undefined) return undefined;
      files.push(file);
    }
    return files;
  }

  private async readOne(name: string, next: Map<string, Cached>): Promise<ManifestFile | undefined> {
    const path = join(this.folder, name);
    const entry = await lstat(path).catch(absent);
    if (entry === undefined) return undefined;
    const link = entry.isSymbolicLink();
    const target = link ? await this.targetOf(path) : { path, stats: entry };
    if (typeof target === 'string') return unread(name, link, target);
    const { stats } = target;
    if (stats.size > MAX_FILE_BYTES) {
      return { ...unread(name, link, `has ${stats.size} bytes, and at most 1 MiB is read: split it`), stats };
    }
    const key = [stats.dev, stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs, stats.mode, link].join(':');
    const known = this.cache.get(name);
    const file = known?.key === key ? known.file : await this.parse(name, target.path, stats, link);
    // What could not be read may be readable next time, and no fact of the file would tell.
    if (file !== undefined && file.text !== '') next.set(name, { key, file });
    return file;
  }

  /**
   * Where a link leads, or why it is not followed. What lies outside of the folder is not read at all: its lines would
   * stand in messages, for people who may not read it themselves.
   */
  private async targetOf(path: string): Promise<{ readonly path: string; readonly stats: Stats } | string> {
    try {
      const [real, folder] = await Promise.all([realpath(path), realpath(this.folder)]);
      if (real.startsWith(`${folder}${sep}`)) return { path: real, stats: await stat(real) };
      return 'is a link that leads out of the folder, and is not read: put the file itself here';
    } catch (error) {
      const code = systemCode(error);
      if (code === 'ELOOP') return 'is a link that leads in a circle: remove it';
      if (code === 'EACCES') return 'is a link to what the agent’s user may not read: remove it, or mend its modes';
      return 'is a link to nothing: remove it, or put back what it leads to';
    }
  }

  private async parse(name: string, path: string, stats: Stats, link: boolean): Promise<ManifestFile | undefined> {
    let bytes: Buffer | undefined;
    try {
      bytes = await readBytesIfThere(path, MAX_FILE_BYTES);
    } catch (error) {
      const denied = ['EACCES', 'EPERM'].includes(systemCode(error) ?? '');
      const why = denied
        ? 'may not be read by the agent’s user: mend its owner or mode'
        : `can’t be read: ${errorLine(error)}`;
      return { ...unread(name, link, why), stats };
    }
    if (bytes === undefined) return undefined;
    try {
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
      return { name, text, parsed: parseText(text), stats, link };
    } catch (error) {
      const why = error instanceof TypeError ? 'is not UTF-8 text' : `can’t be parsed: ${errorLine(error)}`;
      return { ...unread(name, link, why), stats };
    }
  }
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

function absent(error: unknown): undefined {
  if (systemCode(error) === 'ENOENT') return undefined;
  throw error;
}

const statOf = (path: string): Promise<Stats | undefined> => stat(path).catch(() => undefined);

const unread = (name: string, link: boolean, message: string): ManifestFile => ({
  name,
  text: '',
  parsed: { kind: 'broken', issues: [{ message }] },
  link,
});

const out = (folder: string, message: string): FolderReading => ({ kind: 'out', issue: { source: folder, message } });
