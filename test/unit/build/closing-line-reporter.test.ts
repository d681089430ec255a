import { describe, expect, it } from 'vitest';
import { closingLine, countRun, type CountedModule } from '../../support/closing-line-reporter.js';

const booms = (count: number): readonly Error[] => Array.from({ length: count }, () => new Error('boom'));
const moduleOf = (states: readonly string[], errors = 0, suiteErrors = 0): CountedModule => ({
  moduleId: 'a.test.ts',
  errors: () => booms(errors),
  children: {
    allTests: () => states.map((state, at) => ({ fullName: `case ${String(at)}`, result: () => ({ state }) })),
    allSuites: () => [{ errors: () => booms(suiteErrors) }],
  },
});

describe('countRun', () => {
  it('counts passed and failed tests over all files', () => {
    const counts = countRun([moduleOf(['passed', 'failed']), moduleOf(['passed'])], 0, false);
    expect(counts).toEqual({ passed: 2, failed: 1, skipped: [] });
  });

  it('counts a skipped test as failed and names it', () => {
    const counts = countRun([moduleOf(['passed', 'skipped'])], 0, false);
    expect(counts).toEqual({ passed: 1, failed: 1, skipped: ['a.test.ts > case 1'] });
  });

  it('lets tests go that a name filter left out', () => {
    expect(countRun([moduleOf(['passed', 'skipped'])], 0, true)).toEqual({ passed: 1, failed: 0, skipped: [] });
  });

  it('counts a file that could not be loaded, a failed describe block and an error outside every test', () => {
    expect(countRun([moduleOf([], 2)], 0, false).failed).toBe(1);
    expect(countRun([moduleOf(['passed'], 0, 1)], 0, false).failed).toBe(1);
    expect(countRun([moduleOf(['passed'])], 1, false).failed).toBe(1);
  });

  it('writes the line that scripts/test reads', () => {
    expect(closingLine(3, 0)).toBe('3 passed, 0 failed');
  });
});
