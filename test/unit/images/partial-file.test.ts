import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PartialFile } from '../../../src/images/partial-file.js';
import { tempFolder } from '../../support/temp.js';

const hexOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('a file that is being received', () => {
  it('holds and hashes what came, in whatever pieces, zeros or not, with breaks in between', async () => {
    const path = join(tempFolder(), 'x.partial');
    const piece = fc.record({
      bytes: fc.integer({ min: 1, max: 150_000 }),
      zero: fc.boolean(),
      reopen: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
        rmSync(path, { force: true });
        const file = new PartialFile(path, 'sha256');
        const sent: Buffer[] = [];
        await file.open();
        for (const { bytes, zero, reopen } of pieces) {
          const chunk = Buffer.alloc(bytes, zero ? 0 : 7);
          sent.push(chunk);
          await file.append(chunk);
          if (!reopen) continue;
          await file.close();
          // A write that failed half-way leaves bytes that were never counted.
          const torn = openSync(path, 'r+');
          writeSync(torn, 'torn', file.doneBytes);
          closeSync(torn);
          await file.open();
        }
        await file.finish();
        await file.close();
        const whole = Buffer.concat(sent);
        expect(hexOf(readFileSync(path))).toBe(hexOf(whole));
        expect(file.digest.hex).toBe(hexOf(whole));
        expect(file.doneBytes).toBe(whole.length);
      }),
      { numRuns: 40 },
    );
  });
});
