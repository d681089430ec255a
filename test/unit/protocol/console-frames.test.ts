import { ConsoleFrameDecoder, encodeEnd, encodeOutput, MAX_FRAME_BYTES } from '@eitri/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

describe('console frames', () => {
  it('cut anywhere on their way: give every byte once, in order, and then the end', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), fc.array(fc.nat(20)), (outputs, cuts) => {
        const wire = Buffer.concat([...outputs.map(encodeOutput), encodeEnd({ reason: 'stopped' })]);
        const decoder = new ConsoleFrameDecoder();
        const frames = [];
        let at = 0;
        for (const cut of cuts) {
          frames.push(...decoder.decode(wire.subarray(at, at + cut)));
          at += cut;
        }
        frames.push(...decoder.decode(wire.subarray(at)));
        const output = Buffer.concat(frames.flatMap((frame) => (frame.kind === 'output' ? [frame.bytes] : [])));
        expect(output.equals(Buffer.concat(outputs))).toBe(true);
        expect(frames.at(-1)).toEqual({ kind: 'end', json: '{"reason":"stopped"}' });
      }),
    );
  });

  it('with more output than one holds: several', () => {
    const big = Buffer.alloc(2 * MAX_FRAME_BYTES + 1, 'x');
    const frames = new ConsoleFrameDecoder().decode(encodeOutput(big));
    expect(frames.map((frame) => (frame.kind === 'output' ? frame.bytes.length : -1))).toEqual([
      MAX_FRAME_BYTES,
      MAX_FRAME_BYTES,
      1,
    ]);
  });

  it('that are none: refused before anything is held for them', () => {
    expect(() => new ConsoleFrameDecoder().decode(Buffer.from('HTTP/1.1 200 OK'))).toThrow(/not a console frame/);
    expect(() => new ConsoleFrameDecoder().decode(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]))).toThrow(/not a console/);
  });
});
