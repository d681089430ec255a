/** The last bytes of a stream, however long it was. Holds at most twice its limit. */
export class Tail {
  private chunks: Buffer[] = [];
  private held = 0;

  constructor(private readonly maxBytes: number) {}

  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.held += chunk.length;
    if (this.held <= this.maxBytes * 2) return;
    const kept = Buffer.concat(this.chunks).subarray(-this.maxBytes);
    this.chunks = [Buffer.from(kept)];
    this.held = kept.length;
  }

  text(): string {
    return Buffer.concat(this.chunks).subarray(-this.maxBytes).toString('utf8');
  }
}
