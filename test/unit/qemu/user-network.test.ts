import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import type { Exposure } from '@eitri/core/contracts';
import { parseForwards, planForwards, type Forward } from '../../../plugins/qemu/src/user-network.js';

/** As QEMU 7.2 lists it, with connections in between. */
const LISTING = [
  'Hub -1 (n0):',
  '  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ',
  '  TCP[ESTABLISHED]   14       127.0.0.1  8080       10.0.2.15    80     0     0',
  '  TCP[HOST_FORWARD]  11               * 28054       10.0.2.15    54     0     0',
  '  TCP[HOST_FORWARD]   3       127.0.0.1 28080       10.0.2.15    80     0     0',
  '  UDP[HOST_FORWARD]  10               * 28053       10.0.2.15    53     0     0',
  '  UDP[236 sec]       15       10.0.2.15 40000         8.8.8.8    53     0     0',
  '',
].join('\r\n');

describe("QEMU's list of forwards", () => {
  test('rules and connections stand side by side: the rules are read', () => {
    expect(parseForwards(LISTING)).toEqual([
      { protocol: 'tcp', hostAddress: '0.0.0.0', hostPort: 28_054, guestPort: 54 },
      { protocol: 'tcp', hostAddress: '127.0.0.1', hostPort: 28_080, guestPort: 80 },
      { protocol: 'udp', hostAddress: '0.0.0.0', hostPort: 28_053, guestPort: 53 },
    ]);
  });
});

const forward: fc.Arbitrary<Forward> = fc.record({
  protocol: fc.constantFrom('tcp', 'udp'),
  hostAddress: fc.constantFrom('0.0.0.0', '127.0.0.1', '10.0.0.7'),
  hostPort: fc.integer({ min: 100, max: 104 }),
  guestPort: fc.integer({ min: 80, max: 82 }),
});
/** QEMU never has two rules in one place. */
const present = fc.uniqueArray(forward, { selector: (f) => `${f.protocol}${f.hostAddress}${f.hostPort.toString()}` });
const wanted: fc.Arbitrary<readonly Exposure[]> = fc.array(
  fc.oneof(
    forward,
    forward.map((f) => ({ ...f, hostAddress: '::1' })),
  ),
);
const keyOf = (f: Forward): string => JSON.stringify([f.protocol, f.hostAddress, f.hostPort, f.guestPort]);

describe('the plan', () => {
  test('carried out, it publishes exactly what was wanted and not refused', () => {
    fc.assert(
      fc.property(wanted, present, (exposures, forwards) => {
        const plan = planForwards(exposures, forwards);
        const removed = new Set(plan.remove.map(keyOf));
        const after = [...forwards.filter((f) => !removed.has(keyOf(f))), ...plan.add].map(keyOf).sort();
        const accepted = exposures
          .filter((_, at) => !plan.refused.has(at))
          .map(keyOf)
          .sort();
        expect(after).toEqual(accepted);
      }),
    );
  });

  test('what stays is neither removed nor added: its connections live on', () => {
    fc.assert(
      fc.property(wanted, present, (exposures, forwards) => {
        const plan = planForwards(exposures, forwards);
        const removed = new Set(plan.remove.map(keyOf));
        expect(plan.add.map(keyOf).filter((key) => removed.has(key))).toEqual([]);
        expect(planForwards([...forwards], forwards)).toEqual({ remove: [], add: [], refused: new Map() });
      }),
    );
  });
});
