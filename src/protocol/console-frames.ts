/**
 * What goes over a console's connection from the agent to whoever looks: a byte for the kind, four for the length (big
 * endian), then so many bytes. `output` is the guest's, byte for byte; `end` is the last one and says why, as JSON: a
 * stream that just stops can't tell a guest that went down from an agent that died. The other way bytes go as they are,
 * and a half-close means that no more will be typed.
 */
const HEADER_BYTES = 5;
const OUTPUT = 0;
const END = 1;

/** The most that one frame carries; a longer one is no frame. */
export const MAX_FRAME_BYTES = 2 ** 20;

/** What comes from the agent: output of the guest, or the end, whose JSON is a `ConsoleEndView`. */
export type ConsoleFrame =
  { readonly kind: 'output'; readonly bytes: Buffer } | { readonly kind: 'end'; readonly json: string };

const frame = (kind: number, body: Uint8Array): Buffer => {
  const whole = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  whole.writeUInt8(kind, 0);
  whole.writeUInt32BE(body.length, 1);
  whole.set(body, HEADER_BYTES);
  return whole;
};

/** Output of any length: more than one frame holds becomes several. */
export function encodeOutput(bytes: Uint8Array): Buffer {
  if (bytes.length <= MAX_FRAME_BYTES) return frame(OUTPUT, bytes);
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += MAX_FRAME_BYTES) {
    parts.push(frame(OUTPUT, bytes.subarray(at, at + MAX_FRAME_BYTES)));
  }
  return Buffer.concat(parts);
}

/** The last frame: why the console ended, as JSON. */
export const encodeEnd = (end: object): Buffer => frame(END, Buffer.from(JSON.stringify(end)));

/** Puts frames together from chunks as they come. Holds at most one frame; throws on what is none. */
export class ConsoleFrameDecoder {
  private held: Buffer = Buffer.alloc(0);

  decode(chunk: Buffer): readonly ConsoleFrame[] {
    let rest = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const frames: ConsoleFrame[] = [];
    while (rest.length >= HEADER_BYTES) {
      const kind = rest.readUInt8(0);
      const length = rest.readUInt32BE(1);
      if (kind > END || length > MAX_FRAME_BYTES) {
        throw new Error(`not a console frame: kind ${kind}, ${length} bytes`);
      }
      if (rest.length < HEADER_BYTES + length) break;
      const bytes = rest.subarray(HEADER_BYTES, HEADER_BYTES + length);
      frames.push(kind === OUTPUT ? { kind: 'output', bytes } : { kind: 'end', json: bytes.toString('utf8') });
      rest = rest.subarray(HEADER_BYTES + length);
    }
    this.held = rest;
    return frames;
  }
}
