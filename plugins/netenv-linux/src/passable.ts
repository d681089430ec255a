/**
 * Whether another user can reach a folder. dnsmasq reads its hosts when it is no longer root: below a folder that it
 * can't pass it runs on, answers nobody, and tells only its log.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ServiceUser } from './dnsmasq-files.js';

export interface FolderRights {
  readonly path: string;
  readonly mode: number;
  readonly userId: number;
  readonly groupId: number;
}

/** The first folder, from the top, that this user can't pass. Pure. */
export function blockedAt(folders: readonly FolderRights[], user: ServiceUser): string | undefined {
  return folders.find((folder) => {
    if (folder.userId === user.userId) return (folder.mode & 0o100) === 0;
    if (folder.groupId === user.groupId) return (folder.mode & 0o010) === 0;
    return (folder.mode & 0o001) === 0;
  })?.path;
}

/** A folder and all above it, from the top; those that are not there yet will be made as they should be. */
export async function rightsOf(folder: string): Promise<readonly FolderRights[]> {
  const above = dirname(folder) === folder ? [] : await rightsOf(dirname(folder));
  try {
    const { mode, uid, gid } = await stat(folder);
    return [...above, { path: folder, mode, userId: uid, groupId: gid }];
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return above;
    throw error;
  }
}
