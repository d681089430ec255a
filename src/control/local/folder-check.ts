/**
 * Whether an agent may start on a folder of manifests, found out before anything of a run is made. The same judgement as
 * that of the control plane's first look, without the documents, none of which can refuse a start.
 */
import type { DesiredSnapshot, DesiredStore } from '@eitri/core/contracts';
import { permanent } from '@eitri/core/kit';
import { markerTrouble } from './folder-reading.js';
import { readMarker } from './lineage-marker.js';

export interface FolderFence extends Pick<DesiredStore, 'current'> {
  /** Why a word of this lineage and age would be refused. */
  readonly refusalOf: (word: Pick<DesiredSnapshot, 'lineage' | 'epoch'>) => string | undefined;
}

/**
 * Rejects, permanent, with what to type. A host that accepted a word before starts without its marker too: what ran goes
 * on, also when the disk of the manifests is not mounted yet.
 */
export async function checkFolder(folder: string, desired: FolderFence): Promise<void> {
  const reading = await readMarker(folder);
  if (reading.kind === 'marker') {
    const why = desired.refusalOf(reading.marker);
    if (why !== undefined) throw notReadable(folder, why);
  } else if (desired.current() === undefined) {
    throw notReadable(folder, await markerTrouble(folder, reading, undefined));
  }
}

export const notReadable = (folder: string, why: string): Error => permanent(`read the manifests in ${folder}: ${why}`);
