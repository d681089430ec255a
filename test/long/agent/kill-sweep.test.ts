import { describe, expect, it } from 'vitest';
import { sweepScene } from '../../support/kill-sweep.js';

describe('an agent over real QEMU that is killed', () => {
  it('at any point of creating a VM has it running, once, after its next start', async () => {
    const { tried, killed } = await sweepScene('create', { of: 1, rest: 0 });
    expect(tried).toBeGreaterThan(75);
    expect(killed).toBeGreaterThan(tried * 0.8);
  });

  it('at any point of destroying a VM leaves nothing of it after its next start', async () => {
    const { tried, killed } = await sweepScene('destroy', { of: 1, rest: 0 });
    expect(tried).toBeGreaterThan(30);
    expect(killed).toBeGreaterThan(tried * 0.8);
  });
});
