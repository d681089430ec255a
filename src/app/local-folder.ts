/**
 * Making the folder of manifests that a host takes its VMs from.
 */
import { resolve } from 'node:path';
import { errorLine, systemCode } from '@eitri/core/kit';
import { initFolder } from '../control/local/index.js';
import { SystemRandom } from '../host/index.js';
import { EXIT, exitError, withExitCode } from './exit.js';

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
    throw exitError(EXIT.cantWriteState, `${errorLine(known)}: choose another folder, or mend that one`);
  }
}
