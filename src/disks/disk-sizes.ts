/**
 * The arithmetic of disk sizes. Pure.
 *
 * The range is checked before anything is multiplied: a size far out of range would wrap or lose precision and then pass
 * every later comparison.
 */
import { formatBytes, GIB, MAX_DISK_GIB, permanent } from '@eitri/core/kit';

/** Bytes of a disk of so many GiB. Permanent: not a whole number in [1, 2^20]. `what` is named in the message. */
export function diskBytes(what: string, sizeGib: number): number {
  if (!Number.isInteger(sizeGib) || sizeGib < 1 || sizeGib > MAX_DISK_GIB) {
    throw permanent(`${what} of ${sizeGib} GiB is out of range [1, ${MAX_DISK_GIB}]`, { code: 'SpecInvalid' });
  }
  return sizeGib * GIB;
}

/** Whole GiB that hold so many bytes; 1 at least. */
export const wholeGib = (bytes: number): number => Math.max(1, Math.ceil(bytes / GIB));

/** Size of a root disk. Permanent: smaller than the image, whose file system would be cut. */
export function rootDiskBytes(imageBytes: number, sizeGib: number | undefined): number {
  const targetBytes = diskBytes('a root disk', sizeGib ?? wholeGib(imageBytes));
  if (targetBytes >= imageBytes) return targetBytes;
  throw permanent(
    `the root disk of ${sizeGib ?? 0} GiB (${targetBytes} bytes) is smaller than its image of ` +
      `${formatBytes(imageBytes)} (${imageBytes} bytes): set disk to ${wholeGib(imageBytes)}GiB or more`,
    { code: 'DiskTooSmall' },
  );
}

/** Permanent when a disk that stands would have to shrink. */
export function refuseShrink(what: string, setting: string, currentBytes: number, targetBytes: number): void {
  if (targetBytes >= currentBytes) return;
  throw permanent(
    `${what} has ${formatBytes(currentBytes)} (${currentBytes} bytes) and would shrink to ${formatBytes(targetBytes)} ` +
      `(${targetBytes} bytes), which cuts what is on it: set ${setting} to ${wholeGib(currentBytes)}GiB or more`,
    { code: 'DiskTooSmall' },
  );
}
