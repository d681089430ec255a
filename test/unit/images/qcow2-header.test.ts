import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inspectQcow2 } from '../../../src/images/qcow2-header.js';
import { qcow2Header, type HeaderFields } from '../../support/qcow2.js';

const why = (fields: HeaderFields): string => {
  const verdict = inspectQcow2(qcow2Header(fields));
  return verdict.kind === 'refused' ? verdict.why : 'accepted';
};

describe('a qcow2 header', () => {
  it('that is plain is accepted with what it says', () => {
    expect(inspectQcow2(qcow2Header({ size: 5n * 2n ** 40n, clusterBits: 21 }))).toEqual({
      kind: 'accepted',
      header: { version: 3, virtualSizeBytes: 5 * 2 ** 40, clusterBits: 21, compression: 'zlib', extendedL2: false },
    });
    expect(why({ version: 2 })).toBe('accepted');
  });

  it.each([
    ['a backing file, by its name', { backing: '/etc/shadow' }, /backing file \("\/etc\/shadow"\)/],
    ['a backing file that is an address', { backing: 'json:{"driver":"https"}' }, /backing file/],
    ['a backing file in version 2', { version: 2, backing: '/etc/shadow' }, /backing file/],
    ['an external data file, by its bit', { incompatible: 4n }, /external data file/],
    ['an external data file, by its name only', { extensions: [ext(0x44415441, 'secret.raw')] }, /external data file/],
    [
      'an external data file behind another extension',
      { extensions: [ext(1, 'x'), ext(0x44415441, 'y')] },
      /data file/,
    ],
    ['AES encryption', { encryption: 1 }, /encrypted \(AES\)/],
    ['LUKS encryption', { encryption: 2 }, /encrypted \(LUKS\)/],
    ['a LUKS header without the method', { extensions: [ext(0x0537be77, '0123456789abcdef')] }, /encrypted/],
    ['the mark of corruption', { incompatible: 2n }, /corrupt/],
    ['an unknown feature', { incompatible: 1n << 5n }, /0x20/],
    ['an unknown feature beyond 32 bits', { incompatible: 1n << 40n }, /0x10000000000/],
    ['an unknown compression', { incompatible: 8n, compression: 2 }, /method 2/],
    ['version 1', { version: 1 }, /version 1/],
    ['version 4', { version: 4 }, /version 4/],
    ['no size', { size: 0n }, /no size/],
    ['a size beyond the range', { size: 2n ** 50n + 1n }, /more than 1048576 GiB/],
    ['clusters of 2^32 bytes', { clusterBits: 32 }, /clusters/],
    ['a header longer than what was read', { headerBytes: 65_544 }, /65544 bytes/],
  ] as const)('with %s is refused, and says so', (_what, fields, message) => {
    expect(why(fields)).toMatch(message);
  });

  it('with zstd clusters or extended L2 entries is accepted: qemu-img reads both', () => {
    const verdict = inspectQcow2(qcow2Header({ incompatible: 0b11000n, compression: 1 }));
    expect(verdict).toMatchObject({ kind: 'accepted', header: { compression: 'zstd', extendedL2: true } });
  });

  it('whose extensions run out of the first cluster is refused: what stands behind was not read', () => {
    const bytes = qcow2Header();
    bytes.writeUInt32BE(1, 112);
    bytes.writeUInt32BE(1_000_000, 116);
    expect(inspectQcow2(bytes)).toMatchObject({ kind: 'refused' });
    expect(inspectQcow2(qcow2Header({ extensions: [ext(1, 'x')] }).subarray(0, 124))).toMatchObject({
      kind: 'refused',
    });
  });

  it('of any bytes gives a verdict and never throws', () => {
    const anyHeader = fc
      .tuple(fc.uint8Array({ maxLength: 300 }), fc.boolean())
      .map(([bytes, magic]) =>
        Buffer.concat([magic ? Buffer.from('514649fb00000003', 'hex') : Buffer.alloc(0), bytes]),
      );
    fc.assert(fc.property(anyHeader, (bytes) => ['accepted', 'refused'].includes(inspectQcow2(bytes).kind)));
  });

  it('never is accepted while it names another file, whatever else it says', () => {
    const fields = fc.record({
      backing: fc.option(fc.string({ minLength: 1, maxLength: 200 }), { nil: undefined }),
      dataFile: fc.boolean(),
      others: fc.bigInt(0n, 31n),
      size: fc.bigInt(1n, 2n ** 50n),
      clusterBits: fc.integer({ min: 9, max: 21 }),
    });
    fc.assert(
      fc.property(fields, ({ backing, dataFile, others, size, clusterBits }) => {
        const incompatible = dataFile ? others | 4n : others & ~4n;
        const compression = (others & 8n) === 0n ? 0 : 1;
        const named = backing === undefined ? {} : { backing };
        const verdict = inspectQcow2(qcow2Header({ size, clusterBits, incompatible, compression, ...named }));
        const shouldPass = backing === undefined && !dataFile && (others & 2n) === 0n;
        expect(verdict.kind).toBe(shouldPass ? 'accepted' : 'refused');
        if (verdict.kind === 'accepted') expect(BigInt(verdict.header.virtualSizeBytes)).toBe(size);
      }),
    );
  });
});

function ext(type: number, text: string): { readonly type: number; readonly data: Buffer } {
  return { type, data: Buffer.from(text) };
}
