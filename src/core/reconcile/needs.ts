/**
 * What a VM takes of what its host offers, in the admission ledger's units. Pure.
 */
import type { DesiredLife, VmRecord, VmSpec } from '../contracts/index.js';
import type { Need } from './admission-ledger.js';
import { diskGibOf } from './spec-change.js';

/** What it would hold when it runs as it is wanted. */
export function needOf(of: { readonly record: VmRecord | undefined; readonly wanted: DesiredLife | undefined }): Need {
  const { record } = of;
  const spec = of.wanted?.spec ?? record?.spec;
  if (spec === undefined) return { vcpus: 0, memoryMib: 0, diskGib: 0 };
  const diskGib = diskNeed(spec, record?.diskGib, record?.prepared.imageBytes);
  return { vcpus: spec.cpus, memoryMib: spec.memoryMib, diskGib };
}

/** What it holds as it stands: its disks always, the rest while a VMM of it runs. */
export const heldBy = (record: VmRecord | undefined, runs: boolean): Need => ({
  vcpus: record !== undefined && runs ? record.spec.cpus : 0,
  memoryMib: record !== undefined && runs ? record.spec.memoryMib : 0,
  diskGib: record === undefined ? 0 : heldDisk(record),
});

/** A root disk is never smaller than it is, whatever is declared. */
function diskNeed(spec: VmSpec, diskGib: number | undefined, imageBytes: number | undefined): number {
  const root = Math.max(spec.diskGib ?? 0, diskGib ?? 0);
  return diskGibOf(root === 0 ? spec : { ...spec, diskGib: root }, imageBytes);
}

/**
 * What stands, or was let in. The size of an image counts once a disk is made of it: it was learned after the VM was let
 * in, and one that has to wait since then holds nothing for it.
 */
function heldDisk({ spec, diskGib, intent, prepared }: VmRecord): number {
  const made = diskGib !== undefined || intent?.step === 'prepareDisk';
  return diskNeed(spec, diskGib, made ? prepared.imageBytes : undefined);
}
