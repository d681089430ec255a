/**
 * The random histories of the sim lane, twenty times as many, from other seeds.
 */
import { describe, it } from 'vitest';
import { checkHistories } from '../support/history/run.js';

const HISTORIES = 10_000;
const AT_ONCE = 1_000;
const FIRST = 1_000_000;

describe('a host on which anything may happen', () => {
  it.each(Array.from({ length: HISTORIES / AT_ONCE }, (_, at) => FIRST + at * AT_ONCE))(
    'is as wanted once faults end, and has lost nothing: from seed %i',
    async (first) => {
      await checkHistories(first, AT_ONCE);
    },
  );
});
