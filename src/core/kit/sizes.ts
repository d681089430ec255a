/**
 * Sizes. JavaScript's `<<` works on 32 bits (`1 << 20 << 30` is 0), so sizes are multiplied, after the range check.
 */

/** Bytes of a KiB. */
export const KIB = 2 ** 10;
/** Bytes of a MiB. */
export const MIB = 2 ** 20;
/** Bytes of a GiB. */
export const GIB = 2 ** 30;

/** Largest disk in GiB: 1 PiB. `MAX_DISK_GIB * GIB` is 2^50, which a number still holds exactly. */
export const MAX_DISK_GIB = 2 ** 20;

const UNITS: Readonly<Record<string, number>> = {
  K: KIB, M: MIB, G: GIB, T: 2 ** 40,
  KiB: KIB, MiB: MIB, GiB: GIB, TiB: 2 ** 40,
}; // prettier-ignore

/** Bytes of `2GiB`, `512MiB` or `2G`; a plain number is in `plainUnit` bytes. Undefined: not a size. */
export function parseSize(text: string, plainUnit: number): number | undefined {
  const match = /^(\d{1,15})(?:\s?([KMGT](?:iB)?))?$/.exec(text.trim());
  if (match === null) return undefined;
  const unit = match[2] === undefined ? plainUnit : UNITS[match[2]];
  if (unit === undefined) return undefined;
  const bytes = Number(match[1]) * unit;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** `1.5 GiB`, `20 GiB`, `312 KiB`: for people. */
export function formatBytes(bytes: number): string {
  const [unit, name] =
    bytes >= GIB ? [GIB, 'GiB'] : bytes >= MIB ? [MIB, 'MiB'] : bytes >= KIB ? [KIB, 'KiB'] : [1, 'B'];
  const value = bytes / unit;
  return `${Number.isInteger(value) ? value.toString() : value.toFixed(1)} ${name}`;
}
