import { codeOf, GIB, isPermanent, MAX_DISK_GIB } from '@eitri/core/kit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diskBytes, rootDiskBytes } from '../../../src/disks/disk-sizes.js';

const thrownBy = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return new Error('it did not throw');
};

describe('the size of a disk', () => {
  it.each([0, -1, 1.5, NaN, Infinity, 2 ** 20 + 1, 2 ** 34 + 10, 2 ** 53])('of %d GiB is out of range', (gib) => {
    const error = thrownBy(() => diskBytes('a root disk', gib));
    expect(String(error)).toContain(`${gib} GiB is out of range [1, 1048576]`);
    expect(isPermanent(error)).toBe(true);
    expect(codeOf(error)).toBe('SpecInvalid');
  });

  it('at the ends of the range is exact', () => {
    expect(diskBytes('x', 1)).toBe(2 ** 30);
    expect(diskBytes('x', MAX_DISK_GIB)).toBe(2 ** 50);
  });

  it('that is not given is the whole GiB that hold the image', () => {
    expect(rootDiskBytes(1, undefined)).toBe(GIB);
    expect(rootDiskBytes(GIB, undefined)).toBe(GIB);
    expect(rootDiskBytes(GIB + 1, undefined)).toBe(2 * GIB);
  });

  it('below the image is refused with both numbers and what to set', () => {
    const error = thrownBy(() => rootDiskBytes(2.5 * GIB, 2));
    expect(String(error)).toContain('2147483648 bytes');
    expect(String(error)).toContain('2684354560 bytes');
    expect(String(error)).toContain('set disk to 3GiB or more');
    expect(codeOf(error)).toBe('DiskTooSmall');
    expect(isPermanent(error)).toBe(true);
  });

  it('never cuts an image', () => {
    const gib = fc.integer({ min: 1, max: MAX_DISK_GIB });
    fc.assert(
      fc.property(gib, fc.integer({ min: 0, max: 2 ** 50 }), (size, image) => {
        if (size * GIB < image) expect(thrownBy(() => rootDiskBytes(image, size))).toSatisfy(isPermanent);
        else expect(rootDiskBytes(image, size)).toBe(size * GIB);
      }),
    );
  });
});
