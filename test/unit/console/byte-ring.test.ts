import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteRing } from '../../../src/console/byte-ring.js';

/** What a ring does, said without indices: a list of bytes. */
class PlainRing {
  bytes: number[] = [];
  constructor(readonly capacity: number) {}
  push(chunk: Uint8Array): void {
    this.bytes = [...this.bytes, ...chunk].slice(-this.capacity);
  }
  take(max: number): number[] {
    return this.bytes.splice(0, max);
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.uint8Array({ maxLength: 40 }).map((chunk) => ({ kind: 'push' as const, chunk })) },
  { weight: 2, arbitrary: fc.nat(50).map((max) => ({ kind: 'take' as const, max })) },
  { weight: 2, arbitrary: fc.nat(50).map((max) => ({ kind: 'newest' as const, max })) },
  { weight: 1, arbitrary: fc.constant({ kind: 'clear' as const }) },
);

describe('byte ring', () => {
  it('behaves like a list of bytes that is cut at its capacity, whatever is done to it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 64 }), fc.array(step, { maxLength: 60 }), (capacity, steps) => {
        const ring = new ByteRing(capacity);
        const plain = new PlainRing(capacity);
        for (const s of steps) {
          if (s.kind === 'push') {
            ring.push(s.chunk);
            plain.push(s.chunk);
          } else if (s.kind === 'take') expect([...ring.take(s.max)]).toEqual(plain.take(s.max));
          else if (s.kind === 'newest') {
            expect([...ring.newest(s.max)]).toEqual(plain.bytes.slice(Math.max(0, plain.bytes.length - s.max)));
          } else {
            ring.clear();
            plain.bytes = [];
          }
          expect(ring.length).toBe(plain.bytes.length);
          expect(ring.room).toBe(capacity - plain.bytes.length);
        }
        expect([...ring.newest()]).toEqual(plain.bytes);
      }),
      { numRuns: 500 },
    );
  });

  it('keeps its order over the steps in which its memory grows, empties and grows again', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 9_000 }), fc.nat(9_000)), { minLength: 1, maxLength: 20 }),
        (rounds) => {
          const ring = new ByteRing(20_000);
          let written = 0;
          for (const [pushed, taken] of rounds) {
            ring.push(Buffer.from(Array.from({ length: pushed }, (_, i) => (written + i) % 251)));
            written += pushed;
            const oldest = written - ring.length;
            const out = ring.take(taken);
            expect(out.every((byte, i) => byte === (oldest + i) % 251)).toBe(true);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('given a chunk larger than itself, keeps the end of it', () => {
    const ring = new ByteRing(8_192);
    ring.push(Buffer.alloc(100, 'a'));
    ring.push(Buffer.concat([Buffer.alloc(10_000, 'b'), Buffer.from('end')]));
    expect(ring.length).toBe(8_192);
    expect(ring.newest(5).toString()).toBe('bbend');
  });

  it('hands out copies: what is pushed later does not change them', () => {
    const ring = new ByteRing(4);
    const chunk = Buffer.from('abcd');
    ring.push(chunk);
    const seen = ring.newest();
    chunk.fill('x');
    ring.push(Buffer.from('efgh'));
    expect(seen.toString()).toBe('abcd');
  });

  it('fed byte by byte, does no work that grows with what it holds', () => {
    const byte = Buffer.from('x');
    const msFor = (capacity: number): number => {
      const ring = new ByteRing(capacity);
      ring.push(Buffer.alloc(capacity));
      const before = performance.now();
      for (let i = 0; i < 200_000; i++) ring.push(byte);
      return performance.now() - before;
    };
    msFor(1_024);
    // A ring that copied itself at each push would need 4 MiB × 200,000 here: hours.
    expect(msFor(4 * 2 ** 20)).toBeLessThan(50 * msFor(1_024) + 500);
  });

  it('refuses a capacity that holds nothing', () => {
    expect(() => new ByteRing(0)).toThrow(/capacity 0/);
    expect(() => new ByteRing(1.5)).toThrow(/capacity 1.5/);
  });
});
