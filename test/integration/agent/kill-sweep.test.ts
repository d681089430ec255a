/**
 * Every third of the points at which an agent can die; all of them are tried in test/long/agent.
 */
import { describe, expect, it } from 'vitest';
import { sweepScene } from '../../support/kill-sweep.js';

const LIMIT_MS = 400_000;
/** Another one of 0, 1, 2 tries other points. */
const REST = 1;

describe('an agent over real QEMU that is killed', () => {
  it(
    'at every third point of creating a VM has it running, once, after its next start',
    async () => {
      const { tried, killed } = await sweepScene('create', { of: 3, rest: REST });
      expect(tried).toBeGreaterThan(25);
      expect(killed).toBeGreaterThan(tried * 0.8);
    },
    LIMIT_MS,
  );

  it(
    'at every third point of destroying a VM leaves nothing of it after its next start',
    async () => {
      const { tried, killed } = await sweepScene('destroy', { of: 3, rest: REST });
      expect(tried).toBeGreaterThan(10);
      expect(killed).toBeGreaterThan(tried * 0.8);
    },
    LIMIT_MS,
  );
});
