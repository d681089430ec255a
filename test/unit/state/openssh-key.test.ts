import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodePrivateKey, encodePrivateKey, publicLineOf } from '../../../src/state/openssh-key.js';

const seed = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe('a private key in OpenSSH’s format', () => {
  it('gives its seed back', () => {
    fc.assert(
      fc.property(seed, (bytes) => {
        expect(decodePrivateKey(encodePrivateKey(bytes))).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 30 },
    );
  });

  it('cut, or with one character changed, is none', () => {
    const text = encodePrivateKey(new Uint8Array(32).fill(7));
    fc.assert(
      fc.property(fc.integer({ min: 0, max: text.length - 1 }), (at) => {
        expect(decodePrivateKey(text.slice(0, at))).toBeUndefined();
        const other = text[at] === 'A' ? 'B' : 'A';
        expect(decodePrivateKey(text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined();
      }),
    );
    expect(decodePrivateKey('')).toBeUndefined();
  });

  it('has the public line of RFC 8032’s first key', () => {
    const rfc8032 = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex');
    const publicKey = Buffer.from(publicLineOf(rfc8032).split(' ')[1] ?? '', 'base64').subarray(-32);
    expect(publicKey.toString('hex')).toBe('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a');
  });
});
