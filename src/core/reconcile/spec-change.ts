/**
 * What becomes of a changed spec: some fields hold at once, some at the next boot, some never within a life.
 *
 * Pure. `applyAtBoot` is the only place that decides what a VM is booted with.
 */
import type { Capabilities, VmRecord, VmSpec } from '../contracts/index.js';
import { GIB, stableJson } from '../kit/index.js';
import { shortHash } from '../kit/names.js';

/** Fields that hold as soon as they are declared. */
const liveFields = (spec: VmSpec): Pick<VmSpec, 'labels' | 'power' | 'exposures' | 'restart' | 'shutdown'> => ({
  labels: spec.labels,
  power: spec.power,
  exposures: spec.exposures,
  restart: spec.restart,
  shutdown: spec.shutdown,
});

/** Fields that a running VMM keeps until its next boot. */
const bootFields = (spec: VmSpec): Partial<VmSpec> => ({
  cpus: spec.cpus,
  memoryMib: spec.memoryMib,
  ...(spec.diskGib === undefined ? {} : { diskGib: spec.diskGib }),
  volumes: spec.volumes,
  networks: spec.networks,
  hardware: spec.hardware,
  limits: spec.limits,
});

/** Identifies a spec: a failure is forgotten when it changes. */
export const specDigest = (spec: VmSpec): string => shortHash(stableJson(spec), 16);

/** Whether the declaration differs in a field that holds as soon as it is declared. */
export const liveDiffers = (record: VmRecord, spec: VmSpec): boolean =>
  stableJson(liveFields(record.spec)) !== stableJson(liveFields(spec));

/** The record with those fields of a declaration that hold at once. */
export const withLiveFields = (record: VmRecord, spec: VmSpec): VmRecord => ({
  ...record,
  spec: { ...record.spec, ...liveFields(spec) },
});

/** What the next boot would use in place of what is recorded, and what of the declaration can't be had in this life. */
export interface SpecChange {
  readonly spec: VmSpec;
  /** The next boot differs from what runs now. */
  readonly pending: boolean;
  /** Sentences: shrinking and other images are refused. */
  readonly refusals: readonly string[];
}

/** What a VM would be booted with now: the declaration as far as it can be had in this life. */
export function applyAtBoot(record: VmRecord, declared: VmSpec): SpecChange {
  if (!record.bootAttempted) return { spec: declared, pending: false, refusals: [] };
  const refusals: string[] = [];
  const had = record.spec;
  if (stableJson(had.image) !== stableJson(declared.image)) {
    refusals.push(
      'spec.image changed: a VM keeps the image that its disk was made from; declare it under another name',
    );
  }
  let diskGib = declared.diskGib ?? had.diskGib;
  if (had.diskGib !== undefined && diskGib !== undefined && diskGib < had.diskGib) {
    refusals.push(`spec.disk ${diskGib} GiB is smaller than the disk, ${had.diskGib} GiB: disks never shrink`);
    diskGib = had.diskGib;
  }
  // user-data, keys and host name reach a guest at its first boot only: the seed stays what it was.
  const spec: VmSpec = {
    ...had,
    ...liveFields(declared),
    ...bootFields(declared),
    ...(diskGib === undefined ? {} : { diskGib }),
  };
  return { spec, pending: stableJson(bootFields(had)) !== stableJson(bootFields(spec)), refusals };
}

/** What of a spec this backend can't do: a sentence for the operator, or undefined. */
export function unsupported(spec: VmSpec, capabilities: Capabilities): string | undefined {
  const { hardware, limits } = spec;
  const has = capabilities.hardware;
  const asked: readonly (readonly [boolean, boolean, string])[] = [
    [hardware.hugepages !== undefined, has.hugepages, 'spec.hardware.hugepages'],
    [hardware.sharedMemory === true, has.sharedMemory, 'spec.hardware.sharedMemory'],
    [hardware.cpuAffinity !== undefined, has.cpuAffinity, 'spec.hardware.cpuAffinity'],
    [hardware.tpm === true, has.tpm, 'spec.hardware.tpm'],
    [hardware.vsock === true, has.vsock, 'spec.hardware.vsock'],
    [hardware.smbiosSerial !== undefined, has.smbiosSerial, 'spec.hardware.smbiosSerial'],
    [limits.diskIops !== undefined, capabilities.limits.disk, 'spec.limits.diskIops'],
    [limits.diskBandwidthBytes !== undefined, capabilities.limits.disk, 'spec.limits.diskBandwidth'],
    [limits.netBandwidthBits !== undefined, capabilities.limits.net, 'spec.limits.netBandwidth'],
    [spec.networks.length > 0, capabilities.namedNetworks, 'spec.networks'],
  ];
  const field = asked.find(([wanted, able]) => wanted && !able)?.[2];
  return field === undefined
    ? undefined
    : `${field} is not something that backend ${capabilities.backend} can do: remove it`;
}

/** Disk in whole GiB that a VM takes: its root disk and its volumes. 0 for a root disk whose size is not known yet. */
export function diskGibOf(spec: VmSpec, imageBytes: number | undefined): number {
  const root = spec.diskGib ?? (imageBytes === undefined ? 0 : Math.ceil(imageBytes / GIB));
  return spec.volumes.reduce((sum, volume) => sum + volume.sizeGib, root);
}
