import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Tail } from '../../../src/host/tail.js';

it('a tail is the last bytes of all that was pushed, however it was cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary-ascii' })), fc.integer({ min: 1, max: 20 }), (chunks, maxBytes) => {
      const tail = new Tail(maxBytes);
      for (const chunk of chunks) tail.push(Buffer.from(chunk));
      expect(tail.text()).toBe(chunks.join('').slice(-maxBytes));
    }),
  );
});
