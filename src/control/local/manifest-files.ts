/**
 * Files of this host that a manifest names, and who may name them.
 *
 * A manifest must not let its writer read what he can't read himself. `userDataFile` relative to the folder stays inside
 * it, links followed. An absolute one, and an image by `file:` outside the image folders, count only in a manifest whose
 * file belongs to root or to the agent's own user and that not everybody may write.
 */
import type { VmSpec } from '@eitri/core/contracts';
import { errorLine, systemCode } from '@eitri/core/kit';
import type { Stats } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { isAbsolute, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readBytesIfThere } from '../../host/atomic-file.js';
import type { Resolved } from './folder-word.js';
import type { TextDocument } from './manifest-text.js';
import type { LineIssue } from './yaml-text.js';

const MAX_USER_DATA_BYTES = 256 * 1024;
const WRITABLE_BY_ALL = 0o002;

export interface ManifestFileRules {
  readonly folder: string;
  /** The user that the agent runs as. */
  readonly agentUid: number;
  /** Folders from which any manifest may name images (`--image-dir`). */
  readonly imageFolders: readonly string[];
}

/** What counts of a manifest's file. */
export type FileOwner = Pick<Stats, 'uid' | 'mode'>;

const isTrusted = (stats: FileOwner | undefined, agentUid: number): boolean =>
  stats !== undefined && (stats.uid === 0 || stats.uid === agentUid) && (stats.mode & WRITABLE_BY_ALL) === 0;

/** The spec of a document that parsed, with its user-data read in. */
export async function resolveManifest(
  document: TextDocument,
  stats: FileOwner | undefined,
  rules: ManifestFileRules,
): Promise<Resolved | undefined> {
  const { manifest } = document;
  if (manifest === undefined) return undefined;
  const trusted = isTrusted(stats, rules.agentUid);
  const { spec, userDataFile, userDataLine } = manifest;
  const refused = imageRefusal(spec, trusted, rules.imageFolders);
  if (refused !== undefined) return issue({ line: document.line, field: 'spec.image.url', message: refused });
  if (userDataFile === undefined) return { kind: 'spec', spec };
  try {
    return { kind: 'spec', spec: { ...spec, userData: await userDataOf(userDataFile, trusted, rules.folder) } };
  } catch (error) {
    const message = `${userDataFile}: ${unreadWords(error)}`;
    return issue({ line: userDataLine ?? document.line, field: 'spec.userDataFile', message });
  }
}

const issue = (found: LineIssue): Resolved => ({ kind: 'issue', issue: found });

const NOT_TRUSTED = 'only in a manifest that belongs to root or to the agent’s user, and that not everybody may write';

function imageRefusal(spec: VmSpec, trusted: boolean, imageFolders: readonly string[]): string | undefined {
  if (spec.image.kind !== 'url' || !spec.image.url.startsWith('file:') || trusted) return undefined;
  // A URL has no `..` left in it; what links lead out of an image folder is seen when the image is opened.
  const path = fileURLToPath(spec.image.url);
  const below = imageFolders.some((folder) => path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`));
  return below ? undefined : `a file of this host may be named ${NOT_TRUSTED}, or below --image-dir`;
}

/**
 * The spec of a document that is only asked about, by somebody who may look and no more: a file outside of the folder is
 * not opened for them, and `known` stands for what it holds.
 */
export async function resolveAsked(
  document: TextDocument,
  stats: FileOwner | undefined,
  rules: ManifestFileRules,
  known: VmSpec | undefined,
): Promise<Resolved | undefined> {
  const { manifest } = document;
  if (manifest?.userDataFile === undefined || !isAbsolute(manifest.userDataFile)) {
    return await resolveManifest(document, stats, rules);
  }
  const { userDataFile: _unread, ...inline } = manifest;
  const resolved = await resolveManifest({ ...document, manifest: inline }, stats, rules);
  if (resolved?.kind !== 'spec' || known?.userData === undefined) return resolved;
  return { kind: 'spec', spec: { ...resolved.spec, userData: known.userData } };
}

/** In words of what to do; of what stands in the file, nothing. */
function unreadWords(error: unknown): string {
  switch (systemCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'is not there: put it beside the manifest, or remove the line';
    case 'EACCES':
    case 'EPERM':
      return 'may not be read by the agent’s user: mend its owner or mode';
    case 'ELOOP':
      return 'is a link that leads in a circle: put the file itself there';
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return 'is not UTF-8 text';
    default:
      return error instanceof FileRefusal ? error.message : `can’t be read: ${errorLine(error)}`;
  }
}

/** Why a file that is there does not count. */
class FileRefusal extends Error {}

async function userDataOf(path: string, trusted: boolean, folder: string): Promise<string> {
  if (isAbsolute(path) && !trusted) throw new FileRefusal(`an absolute path counts ${NOT_TRUSTED}`);
  const real = await realpath(isAbsolute(path) ? path : join(folder, path));
  if (!isAbsolute(path) && !real.startsWith(`${await realpath(folder)}${sep}`)) {
    throw new FileRefusal('leads out of the folder of manifests: put the file into it, or write its absolute path');
  }
  const bytes = await readBytesIfThere(real, MAX_USER_DATA_BYTES);
  if (bytes === undefined) throw new FileRefusal('is not there: put it beside the manifest, or remove the line');
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  if (text.trim() === '') throw new FileRefusal('is empty: is it being written?');
  return text;
}
