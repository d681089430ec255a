/**
 * Files that another process reads: there whole or not at all, with the rights that the reader needs.
 */
import { chmod, chown, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

const PARTIAL = '.partial';

/** Who may read: the owner, and this group where the mode lets it. */
export interface FileRights {
  readonly mode: number;
  /** Absent: that of the agent. */
  readonly groupId?: number;
}

/** A temp sibling, synced, renamed, and its folder synced. */
export async function writeWhole(path: string, text: string, { mode, groupId }: FileRights): Promise<void> {
  const partial = `${path}${PARTIAL}`;
  await rm(partial, { force: true });
  const file = await open(partial, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.chmod(mode);
    // The owner stays: root's agent, and dnsmasq reads as the group.
    if (groupId !== undefined) await file.chown((await file.stat()).uid, groupId);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export async function ensureFolder(path: string, { mode, groupId }: FileRights): Promise<void> {
  await mkdir(path, { recursive: true });
  if (groupId !== undefined) await chown(path, (await stat(path)).uid, groupId);
  await chmod(path, mode);
}

/** Undefined: there is no such file. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
