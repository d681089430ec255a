/**
 * Small pure changes of a record.
 */
import type { Failure, VmId, VmInstance, VmPaths, VmRecord, VmSpec, VmUid } from '../contracts/index.js';
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
    version: 2,
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
    destroying: false,
  };
}

/** After an attempt to bring it up that failed: the waiting for the next begins now. */
export const withFailure = (record: VmRecord, failure: Failure): VmRecord => ({
  ...record,
  failure,
  attempts: record.attempts + 1,
  waitedMs: 0,
  crashes: record.boots > 0 ? record.crashes + 1 : record.crashes,
});

/** A record as its backend is told of it. */
export const instanceOf = (record: VmRecord): VmInstance => ({
  uid: record.uid,
  spec: record.spec,
  paths: record.paths,
  mac: record.mac,
  namedMac: record.namedMac,
  volumePaths: record.volumePaths,
});

type Optional =
  'address' | 'networkAddress' | 'bootId' | 'startedAt' | 'intent' | 'failure' | 'stop' | 'lastExit' | 'shelved';

/** The record without some of its optional fields. */
export function without(record: VmRecord, ...fields: readonly Optional[]): VmRecord {
  return Object.fromEntries(
    Object.entries(record).filter(([key]) => !(fields as readonly string[]).includes(key)),
  ) as unknown as VmRecord;
}
