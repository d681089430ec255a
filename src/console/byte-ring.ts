/**
 * A bounded store of bytes, first in, first out.
 *
 * Used in two ways: as a history, `push` lets the oldest bytes go; as a queue, the caller asks for `room` first and
 * empties it by `take`. A guest prints a few bytes at a time and every read of the pump lands here, so a `push` costs one
 * copy of its chunk, however full the ring is, and holds no object a chunk. Memory grows with what is in it, up to the
 * capacity, and is given back when it runs empty.
 */
const FIRST_ALLOCATION_BYTES = 4096;
const NOTHING: Buffer = Buffer.alloc(0);

export class ByteRing {
  private store: Buffer = NOTHING;
  /** Index of the oldest byte. */
  private start = 0;
  private held = 0;

  constructor(readonly capacityBytes: number) {
    if (!Number.isSafeInteger(capacityBytes) || capacityBytes < 1) {
      throw new RangeError(`capacity ${capacityBytes} of a byte ring is not a positive whole number`);
    }
  }

  get length(): number {
    return this.held;
  }

  /** How much may be pushed before the oldest bytes go. */
  get room(): number {
    return this.capacityBytes - this.held;
  }

  /** Appends a copy of the chunk; what no longer fits goes, oldest first. */
  push(chunk: Uint8Array): void {
    const kept = chunk.length > this.capacityBytes ? chunk.subarray(chunk.length - this.capacityBytes) : chunk;
    if (kept.length === 0) return;
    this.skip(Math.max(0, this.held + kept.length - this.capacityBytes));
    this.grow(this.held + kept.length);
    const at = (this.start + this.held) % this.store.length;
    const untilEdge = Math.min(kept.length, this.store.length - at);
    this.store.set(kept.subarray(0, untilEdge), at);
    this.store.set(kept.subarray(untilEdge), 0);
    this.held += kept.length;
  }

  /** A copy of the newest bytes, at most `maxBytes` of them. */
  newest(maxBytes: number = this.held): Buffer {
    const count = Math.max(0, Math.min(maxBytes, this.held));
    return this.copy(this.held - count, count);
  }

  /** Takes the oldest bytes out, at most `maxBytes` of them. */
  take(maxBytes: number): Buffer {
    const count = Math.max(0, Math.min(maxBytes, this.held));
    const taken = this.copy(0, count);
    this.skip(count);
    return taken;
  }

  clear(): void {
    this.skip(this.held);
  }

  private copy(offset: number, count: number): Buffer {
    const copy = Buffer.allocUnsafe(count);
    if (count === 0) return copy;
    const from = (this.start + offset) % this.store.length;
    const untilEdge = Math.min(count, this.store.length - from);
    this.store.copy(copy, 0, from, from + untilEdge);
    this.store.copy(copy, untilEdge, 0, count - untilEdge);
    return copy;
  }

  private skip(count: number): void {
    if (count === 0) return;
    this.held -= count;
    if (this.held === 0) {
      this.start = 0;
      if (this.store.length > FIRST_ALLOCATION_BYTES) this.store = NOTHING;
    } else {
      this.start = (this.start + count) % this.store.length;
    }
  }

  /** Doubling, so that many small pushes cost one copy a byte on average. */
  private grow(neededBytes: number): void {
    if (neededBytes <= this.store.length) return;
    let size = Math.max(FIRST_ALLOCATION_BYTES, this.store.length);
    while (size < neededBytes) size *= 2;
    const grown = Buffer.allocUnsafeSlow(Math.min(size, this.capacityBytes));
    this.copy(0, this.held).copy(grown);
    this.store = grown;
    this.start = 0;
  }
}
