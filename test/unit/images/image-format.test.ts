import { codeOf, isPermanent } from '@eitri/core/kit';
import { describe, expect, it } from 'vitest';
import { inspectImage } from '../../../src/images/image-format.js';
import { qcow2Header } from '../../support/qcow2.js';

const padded = (text: string | Buffer): Buffer =>
  Buffer.concat([typeof text === 'string' ? Buffer.from(text) : text, Buffer.alloc(512)]);

describe('an image', () => {
  it('is what its first bytes say', () => {
    expect(inspectImage('x', qcow2Header(), undefined)).toMatchObject({ format: 'qcow2' });
    expect(inspectImage('x', padded('\xeb\x63\x90'), undefined)).toEqual({ format: 'raw' });
  });

  it.each([
    ['a qcow2 declared as raw', qcow2Header(), 'raw', /declared as raw and is qcow2/],
    ['a raw one declared as qcow2', padded('disk'), 'qcow2', /declared as qcow2 and is raw/],
    ['a gzip file', padded(Buffer.from('1f8b08', 'hex')), undefined, /gzip/],
    ['an xz file', padded(Buffer.from('fd377a585a00', 'hex')), undefined, /xz/],
    ['a VMDK', padded('KDMV'), undefined, /VMDK/],
    ['a web page', padded('\n <!DOCTYPE html><html>'), undefined, /web page/],
    ['a web page declared as raw', padded('<HTML>'), 'raw', /web page/],
    ['nothing', Buffer.alloc(0), undefined, /empty/],
    ['a qcow2 with a backing file', qcow2Header({ backing: '/etc/passwd' }), 'qcow2', /the image x .*backing/],
  ] as const)('that is %s is refused for good, by name', (_what, head, declared, message) => {
    let thrown: unknown;
    try {
      inspectImage('the image x', head, declared);
    } catch (error) {
      thrown = error;
    }
    expect(String(thrown)).toMatch(message);
    expect(isPermanent(thrown)).toBe(true);
    expect(codeOf(thrown)).toBe('ImageUnsupported');
  });
});
