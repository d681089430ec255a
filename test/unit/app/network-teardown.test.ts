import type { LoadedRecord, Observation } from '@eitri/core/contracts';
import { EXIT, exitCodeOf } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { tearDown, type TeardownPorts } from '../../../src/app/network-teardown.js';
import { StatePaths } from '../../../src/state/index.js';
import { calm } from '../../support/quiet.js';
import { recordOf } from '../../support/records.js';

const paths = new StatePaths({ stateDir: '/state', runDir: '/run' });
const readable = (n: number, backend = 'qemu'): LoadedRecord => ({
  kind: 'record',
  record: { ...recordOf(n, paths), backend },
});
const unreadable: LoadedRecord = { kind: 'unreadable', uid: 'lost', path: '/state/vms/lost/record.json', why: 'torn' };

function scene(loaded: readonly LoadedRecord[], observed: Observation) {
  const done: string[] = [];
  const ports: TeardownPorts = {
    network: { teardown: () => Promise.resolve(void done.push('down')) },
    platform: { backend: 'qemu', provisioner: { observe: () => Promise.resolve(observed) } },
    store: { loadRecords: () => Promise.resolve(loaded) },
    cidrFile: { forget: () => Promise.resolve(void done.push('forgotten')) },
  };
  return { ports, done };
}

describe("taking the guests' network down", () => {
  it.each<[string, LoadedRecord, Observation, string]>([
    ['a guest runs', readable(1), { state: 'running', pid: 7 }, ' runs'],
    ['a guest ends', readable(1), { state: 'stopping', pid: 7 }, ' runs'],
    ['nobody can tell whether it runs', readable(1), { state: 'unknown', why: 'EPERM' }, 'may run (EPERM)'],
    ['a record can not be read', unreadable, { state: 'absent' }, "lost may run (its record can't be read)"],
    ['a VM is another backend’s', readable(1, 'cloudhv'), { state: 'absent' }, "may run (it is the backend cloudhv's)"],
  ])('while %s: refused with the reason, and nothing is touched', async (_when, loaded, observed, why) => {
    const { ports, done } = scene([loaded], observed);
    const error: unknown = await tearDown(ports, calm()).catch((refusal: unknown) => refusal);
    expect(String(error)).toContain(why);
    expect(exitCodeOf(error)).toBe(EXIT.tryAgain);
    expect(done).toEqual([]);
  });

  it('while VMs exist and none runs: down, and the subnet in which they have addresses is kept', async () => {
    const { ports, done } = scene([readable(1), readable(2)], { state: 'exited', code: 0 });
    expect(await tearDown(ports, calm())).toEqual({ forgotten: false });
    expect(done).toEqual(['down']);
  });

  it('where no VM is left: down, and the next start may choose another subnet', async () => {
    const { ports, done } = scene([], { state: 'absent' });
    expect(await tearDown(ports, calm())).toEqual({ forgotten: true });
    expect(done).toEqual(['down', 'forgotten']);
  });
});
