import { sampleSpec, sampleUid } from '@eitri/conformance';
import type { LoadedRecord, VmRecord } from '@eitri/core/contracts';
import { natMac } from '@eitri/core/kit';
import { expect, it } from 'vitest';
import { reservationsOf } from '../../../src/app/guest-network.js';
import { StatePaths } from '../../../src/state/state-paths.js';
import { recordOf } from '../../support/records.js';

const paths = new StatePaths({ stateDir: '/state', runDir: '/run' });

function loaded(changes: Partial<VmRecord>): LoadedRecord {
  const { address: _address, bootId: _bootId, intent: _intent, ...bare } = recordOf(1, paths);
  return { kind: 'record', record: { ...bare, spec: sampleSpec(bare.id), ...changes } };
}

const { uid, mac } = recordOf(1, paths);
const boot = { step: 'boot', at: 0 } as const;

it.each<[string, Partial<VmRecord>, readonly object[]]>([
  ['that tells its address is served by it', { address: '10.77.1.9' }, [{ uid, mac, address: '10.77.1.9' }]],
  ['that runs, and tells none, is looked for', { bootId: 'now' }, [{ uid, mac }]],
  ['whose boot an agent died in is looked for', { intent: { ...boot, bootId: 'now' } }, [{ uid, mac }]],
  ['whose boot was cut off with its host has none', { intent: { ...boot, bootId: 'before' } }, []],
  ['that was never booted has none', {}, []],
])('a record %s', (_what, changes, reservations) => {
  expect(reservationsOf([loaded(changes)], 'now')).toEqual(reservations);
});

it('a record that can’t be read is looked for by the MAC that follows from its uid', () => {
  const torn: LoadedRecord = { kind: 'unreadable', uid: sampleUid(7), path: '/state/x', why: 'torn' };
  expect(reservationsOf([torn], 'now')).toEqual([{ uid: sampleUid(7), mac: natMac(sampleUid(7)) }]);
});
