import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lastLines } from '../../../src/admin/follow.js';

/** The slow way. */
function slowly(text: string, count: number): string {
  const lines = text.split('\n');
  const ends = lines.at(-1) === '';
  if (ends) lines.pop();
  const last = count === 0 ? [] : lines.slice(-count);
  return last.length === 0 ? '' : last.join('\n') + (ends ? '\n' : '');
}

describe('the last lines of a log', () => {
  it('are what a slow count gives, whatever ends the log', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ab\n]{0,20}$/), fc.nat(8), (text, count) => {
        expect(lastLines(Buffer.from(text), count).toString()).toBe(slowly(text, count));
      }),
      { numRuns: 1_000 },
    );
  });
});
