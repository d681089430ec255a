/**
 * Small pure changes of a record.
 */
import type { VmId, VmInstance, VmPaths, VmRecord, VmSpec, VmUid } from '../contracts/index.js';
import { namedMac, natMac } from '../kit/index.js';

/** The first record of a life. */
export function newRecord(of: {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly spec: VmSpec;
  readonly backend: string;
  readonly paths: VmPaths;
  readonly now: number;
}): VmRecord {
  const { uid, id, spec, backend, paths, now } = of;
  return {
    version: 1,
    uid,
    id,
    createdAt: now,
    backend,
    spec,
    paths,
    mac: natMac(uid),
    namedMac: namedMac(uid),
    hostKeys: [],
    volumePaths: [],
    prepared: { disk: false, volumes: [], seed: false },
    bootAttempted: false,
    boots: 0,
    upMs: 0,
    attempts: 0,
    waitedMs: 0,
    crashes: 0,
    shelvedMs: 0,
    destroying: false,
  };
}

/** A record as its backend is told of it. */
export const instanceOf = (record: VmRecord): VmInstance => ({
  uid: record.uid,
  spec: record.spec,
  paths: record.paths,
  mac: record.mac,
  namedMac: record.namedMac,
  volumePaths: record.volumePaths,
});

type Optional = 'address' | 'networkAddress' | 'bootId' | 'startedAt' | 'intent' | 'failure' | 'stop' | 'lastExit';

/** The record without some of its optional fields. */
export function without(record: VmRecord, ...fields: readonly Optional[]): VmRecord {
  return Object.fromEntries(
    Object.entries(record).filter(([key]) => !(fields as readonly string[]).includes(key)),
  ) as unknown as VmRecord;
}
