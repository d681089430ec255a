/**
 * What the records say of their backends, read without the care that a run takes with them: nothing is changed, and a
 * record that can't be read still counts as a VM.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { retryable, systemCode } from '@eitri/core/kit';
import { readIfThere } from '../host/atomic-file.js';
import { RECORD_NAME, type StatePaths } from './state-paths.js';

const MAX_BYTES = 2 ** 20;

export interface RecordedBackends {
  /** Lives that have a folder. */
  readonly lives: number;
  /** Each once, sorted; none where `names` was not asked for. */
  readonly names: readonly string[];
}

export async function readRecordedBackends(
  { vms }: Pick<StatePaths, 'vms'>,
  want: { readonly names: boolean },
): Promise<RecordedBackends> {
  let folders: readonly string[];
  try {
    folders = await readdir(vms);
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return { lives: 0, names: [] };
    throw retryable(`read the records in ${vms}`, { cause });
  }
  if (!want.names) return { lives: folders.length, names: [] };
  const names = new Set<string>();
  for (const folder of folders) {
    const name = await backendOf(join(vms, folder, RECORD_NAME));
    if (name !== undefined) names.add(name);
  }
  return { lives: folders.length, names: [...names].sort() };
}

async function backendOf(path: string): Promise<string | undefined> {
  try {
    const text = await readIfThere(path, MAX_BYTES);
    const record = JSON.parse(text ?? '') as { readonly backend?: unknown } | null;
    return typeof record?.backend === 'string' ? record.backend : undefined;
  } catch {
    return undefined;
  }
}
