/** Records for tests: the golden one of each version, and the newest under a uid and folders of the test's own. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { VmId, VmRecord, VmUid } from '@eitri/core/contracts';
import type { StatePaths } from '../../src/state/state-paths.js';

export const goldenRecord = (version = 2): string =>
  readFileSync(fileURLToPath(new URL(`../golden/state/record-v${version}.json`, import.meta.url)), 'utf8');

/** A uid that differs in its last digits only. */
export const uidOf = (n: number): VmUid => `0f8fad5b-d9cb-469f-a165-${n.toString(16).padStart(12, '0')}` as VmUid;

export function recordOf(n: number, paths: StatePaths): VmRecord {
  const golden = JSON.parse(goldenRecord()) as VmRecord;
  const id = `vm-${n}` as VmId;
  return { ...golden, uid: uidOf(n), id, spec: { ...golden.spec, id }, paths: paths.pathsOf(uidOf(n)) };
}
