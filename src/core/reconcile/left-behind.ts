/**
 * What each step leaves in the record once it is done. Pure, and one text for two readers: the executor that did the step,
 * and the planner that foresees it. What a plan shows can therefore not drift from what is written.
 */
import type { ExitState, ImageDigest, ShutdownStep, StopState, VmRecord, VmSpec } from '../contracts/index.js';
import { stableJson } from '../kit/index.js';
import type { ActionMap } from './actions.js';
import { without } from './record.js';
import { withLiveFields } from './spec-change.js';

/** By which it is told whether the volumes of a spec stand. */
export const volumeKeys = ({ volumes }: VmSpec): readonly string[] =>
  volumes.map((volume) => `${volume.name}:${volume.sizeGib}`);

export interface StartFacts {
  readonly bootId: string;
  /** Wall clock: for people. */
  readonly now: number;
}

/** `sizeBytes` is undefined where the image is not here yet. */
export function withImage(record: VmRecord, image: ImageDigest, sizeBytes: number | undefined): VmRecord {
  const { imageBytes: _former, ...prepared } = record.prepared;
  const size = sizeBytes === undefined ? {} : { imageBytes: sizeBytes };
  return without({ ...record, prepared: { ...prepared, image, ...size } }, 'intent');
}

export const withDisk = (record: VmRecord, image: ImageDigest, diskGib: number | undefined): VmRecord =>
  without(
    {
      ...record,
      ...(diskGib === undefined ? {} : { diskGib }),
      prepared: { ...record.prepared, image, disk: true },
    },
    'intent',
  );

export const withVolumes = (record: VmRecord, volumePaths: readonly string[]): VmRecord =>
  without({ ...record, volumePaths, prepared: { ...record.prepared, volumes: volumeKeys(record.spec) } }, 'intent');

export const withSeed = (record: VmRecord, hostKeys: readonly string[]): VmRecord =>
  without({ ...record, hostKeys, prepared: { ...record.prepared, seed: true } }, 'intent');

export const booted = (record: VmRecord, { bootId, now }: StartFacts): VmRecord =>
  without(
    { ...record, bootId, boots: record.boots + 1, startedAt: now, upMs: 0, attempts: 0, waitedMs: 0 },
    'intent',
    'failure',
    'stop',
  );

export const adopted = (record: VmRecord, { bootId, now }: StartFacts): VmRecord =>
  without(
    {
      ...record,
      bootId,
      boots: record.intent?.step === 'boot' ? record.boots + 1 : record.boots,
      startedAt: record.startedAt ?? now,
      upMs: 0,
      attempts: 0,
      waitedMs: 0,
    },
    'intent',
    'failure',
    'stop',
  );

/** `reason`: the VMM's own words, where it failed. */
export function ended(
  record: VmRecord,
  { cause, code, signal }: ActionMap['noteExit'],
  { now, reason }: { readonly now: number; readonly reason: string | undefined },
): VmRecord {
  const lastExit: ExitState = {
    at: now,
    cause,
    ...(code === undefined ? {} : { code }),
    ...(signal === undefined ? {} : { signal }),
    ...(reason === undefined ? {} : { reason }),
  };
  const crashes = cause === 'self' ? record.crashes + 1 : 0;
  return { ...without(record, 'bootId', 'stop', 'intent'), lastExit, crashes, waitedMs: 0 };
}

/** `before`: the shutdown as it stood when this step was begun. */
export function askedToStop(record: VmRecord, step: ShutdownStep, before: StopState): VmRecord {
  const presses = before.presses + (step === 'powerButton' ? 1 : 0);
  return without({ ...record, stop: { ...(record.stop ?? before), step, presses, cancelled: false } }, 'intent');
}

export const stopCancelled = (record: VmRecord): VmRecord =>
  record.stop === undefined ? record : { ...record, stop: { ...record.stop, cancelled: true } };

export const stopForgotten = (record: VmRecord): VmRecord => without(record, 'stop');

export function specApplied(record: VmRecord, { spec, moment }: ActionMap['applySpec']): VmRecord {
  if (moment === 'live') return withLiveFields(record, spec);
  const otherImage = !record.bootAttempted && stableJson(record.spec.image) !== stableJson(spec.image);
  const otherDisk = !record.bootAttempted && record.spec.diskGib !== spec.diskGib;
  const otherNics = stableJson(record.spec.networks) !== stableJson(spec.networks);
  const { prepared } = record;
  return {
    ...record,
    spec,
    prepared: {
      ...(otherImage || prepared.image === undefined ? {} : { image: prepared.image }),
      ...(otherImage || prepared.imageBytes === undefined ? {} : { imageBytes: prepared.imageBytes }),
      disk: prepared.disk && !otherImage && !otherDisk,
      volumes: prepared.volumes,
      // Before the first boot nobody has read the seed; later it only learns of NICs.
      seed: prepared.seed && record.bootAttempted && !otherNics,
    },
  };
}

export const calmed = (record: VmRecord): VmRecord => ({ ...record, crashes: 0 });

export const failureCleared = (record: VmRecord): VmRecord =>
  without({ ...record, attempts: 0, waitedMs: 0, crashes: 0 }, 'failure');
