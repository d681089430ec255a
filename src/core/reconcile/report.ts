/**
 * Turns what is known of a VM into what is told of it. Pure; equal facts give equal bytes.
 */
import type {
  DesiredLife,
  Observation,
  PublishState,
  ReasonCode,
  VmId,
  VmPhase,
  VmRecord,
  VmStatus,
  VmUid,
} from '../contracts/index.js';
import { isAlive } from './decide.js';

/** What the last decision says of a VM. */
export interface Shown {
  readonly phase: VmPhase;
  readonly reason?: ReasonCode;
  readonly message?: string;
}

/** A VM as it is reported. A record comes before a declaration: it is what stands. */
export function statusOf(of: {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly record: VmRecord | undefined;
  readonly wanted: DesiredLife | undefined;
  readonly observed: Observation;
  readonly ports: readonly PublishState[];
  readonly shown: Shown;
}): VmStatus {
  const { record, wanted, observed, shown } = of;
  const spec = record?.spec ?? wanted?.spec;
  const diskGib = record?.diskGib ?? spec?.diskGib;
  return {
    uid: of.uid,
    id: of.id,
    phase: shown.phase,
    wanted: wantedWord(wanted),
    ...(shown.reason === undefined ? {} : { reason: shown.reason }),
    ...(shown.message === undefined ? {} : { message: shown.message }),
    ...(spec === undefined ? {} : { cpus: spec.cpus, memoryMib: spec.memoryMib }),
    ...(diskGib === undefined ? {} : { diskGib }),
    ...(record === undefined ? {} : { backend: record.backend, mac: record.mac }),
    ...(isAlive(observed) ? { pid: observed.pid } : {}),
    ...(record?.address === undefined ? {} : { address: record.address }),
    ...(record?.networkAddress === undefined ? {} : { networkAddress: record.networkAddress }),
    boots: record?.boots ?? 0,
    ...(record?.startedAt === undefined ? {} : { startedAt: record.startedAt }),
    hostKeys: record?.hostKeys ?? [],
    ports: of.ports,
    labels: spec?.labels ?? {},
  };
}

/** What is wanted of a VM, in one word. */
export function wantedWord(wanted: DesiredLife | undefined): VmStatus['wanted'] {
  switch (wanted?.kind) {
    case undefined:
      return 'unknown';
    case 'present':
      return wanted.spec.power;
    case 'tombstoned':
      return 'deleted';
    case 'vanished':
      return 'vanished';
  }
}

type Named = Pick<VmStatus, 'id' | 'uid'>;

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The order of a report: by id, then by uid, by code units and not by language. */
export const byName = (a: Named, b: Named): number => order(a.id, b.id) || order(a.uid, b.uid);
