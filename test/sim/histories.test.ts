/**
 * Random histories of a host: an operator who changes their mind, guests, backends, disks and ports that fail, agents that
 * die anywhere, hosts that reboot. Whatever came before, once faults end every VM is as wanted, and nothing was lost.
 *
 * `EITRI_SIM_SEED` plays one seed alone.
 */
import { describe, expect, it } from 'vitest';
import { checkHistories, play } from '../support/history/run.js';
import { historyOf } from '../support/history/steps.js';

const HISTORIES = 500;
const AT_ONCE = 50;
const asked = process.env['EITRI_SIM_SEED'];
const ranges =
  asked === undefined
    ? Array.from({ length: HISTORIES / AT_ONCE }, (_, at) => ({ first: at * AT_ONCE, count: AT_ONCE }))
    : [{ first: Number(asked), count: 1 }];

describe('a host on which anything may happen', () => {
  it.each(ranges)('is as wanted once faults end, and has lost nothing: $count histories from $first', async (range) => {
    await checkHistories(range.first, range.count);
  });

  it('lives the same history again from the same seed', async () => {
    for (const seed of [3, 33, 333]) expect(await play(historyOf(seed))).toBe(await play(historyOf(seed)));
  });
});
