/**
 * Making the folder of manifests that a host takes its VMs from.
 */
import { resolve } from 'node:path';
import { EXIT, exitError, systemCode, told, withExitCode } from '@eitri/core/kit';
import { initFolder } from '../control/local/index.js';
import { SystemRandom, writeAdvice } from '../host/index.js';

export interface MadeFolder {
  readonly folder: string;
  /** False: it was one already, and stays as it was. */
  readonly made: boolean;
  readonly lineage: string;
  readonly epoch: number;
}

export async function initManifestFolder(path: string): Promise<MadeFolder> {
  const folder = resolve(path);
  try {
    const { kind, marker } = await initFolder(folder, new SystemRandom());
    return { folder, made: kind === 'made', lineage: marker.lineage, epoch: marker.epoch };
  } catch (error) {
    const known = error instanceof Error ? error : new Error(String(error));
    // What the file system says names no way out; all else does.
    if (systemCode(known) === undefined) throw withExitCode(known, EXIT.cantWriteState);
    const why = writeAdvice(known, 'choose another folder');
    throw told(exitError(EXIT.cantWriteState, `${folder} can't be made a manifest folder: ${why}`, known));
  }
}
