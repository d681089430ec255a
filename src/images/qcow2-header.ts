/**
 * Reads a qcow2 header and says whether its content is the guest's alone.
 *
 * Pure, over the first bytes of a file. It stands before any qemu-img call, because qemu-img follows what a header names:
 * a backing file or an external data file would copy a file of this host (or fetch an address) into somebody's guest, and
 * it would exit with 0. What the format may do that we don't know is refused by name, never ignored.
 * The layout is that of QEMU's docs/interop/qcow2; all numbers are big-endian.
 */
import { GIB, MAX_DISK_GIB } from '@eitri/core/kit';

export interface Qcow2Header {
  readonly version: 2 | 3;
  readonly virtualSizeBytes: number;
  readonly clusterBits: number;
  readonly compression: 'zlib' | 'zstd';
  readonly extendedL2: boolean;
}

export type Qcow2Verdict =
  | { readonly kind: 'accepted'; readonly header: Qcow2Header }
  /** `why` completes "the image …". */
  | { readonly kind: 'refused'; readonly why: string };

export const QCOW2_MAGIC = 0x514649fb;
/** Enough for every header and its extensions that tools write. */
export const QCOW2_HEADER_BYTES = 64 * 1024;

const V2_HEADER_BYTES = 72;
const V3_HEADER_BYTES = 104;
const MAX_BACKING_NAME = 1023;
const MIN_CLUSTER_BITS = 9;
const MAX_CLUSTER_BITS = 21;

/** Incompatible features by bit: whoever does not know one must not read the file. */
const CORRUPT_BIT = 1;
const DATA_FILE_BIT = 2;
const COMPRESSION_BIT = 3;
const EXTENDED_L2_BIT = 4;
/** Bit 0, dirty, only says that reference counts may be off: `qemu-img check` judges it. */
const KNOWN_BITS = 5;

const EXTENSION_END = 0;
const EXTENSION_DATA_FILE = 0x44415441;
const EXTENSION_ENCRYPTION = 0x0537be77;

export function inspectQcow2(bytes: Buffer): Qcow2Verdict {
  if (bytes.length < V2_HEADER_BYTES || bytes.readUInt32BE(0) !== QCOW2_MAGIC) return refused('has no qcow2 header');
  const version = bytes.readUInt32BE(4);
  if (version !== 2 && version !== 3) return refused(`is qcow version ${version}, and only 2 and 3 are supported`);
  if (version === 3 && bytes.length < V3_HEADER_BYTES) return refused('ends within its qcow2 header');

  const backing = backingFile(bytes);
  if (backing !== undefined) return refused(`has a backing file (${backing}): merge it with qemu-img convert first`);
  const encryption = bytes.readUInt32BE(32);
  if (encryption !== 0) return refused(`is encrypted (${ENCRYPTION[encryption] ?? `method ${encryption}`})`);
  const clusterBits = bytes.readUInt32BE(20);
  if (clusterBits < MIN_CLUSTER_BITS || clusterBits > MAX_CLUSTER_BITS) {
    return refused(`has clusters of 2^${clusterBits} bytes, which qcow2 does not know`);
  }
  const size = bytes.readBigUInt64BE(24);
  if (size === 0n) return refused('is a disk of no size');
  if (size > BigInt(MAX_DISK_GIB) * BigInt(GIB))
    return refused(`is a disk of ${size} bytes, more than ${MAX_DISK_GIB} GiB`);

  const features = version === 3 ? inspectFeatures(bytes) : NO_FEATURES;
  if (typeof features === 'string') return refused(features);
  const extension = refusedExtension(bytes, features.headerBytes, clusterBits);
  if (extension !== undefined) return refused(extension);
  const { compression, extendedL2 } = features;
  return {
    kind: 'accepted',
    header: { version, virtualSizeBytes: Number(size), clusterBits, compression, extendedL2 },
  };
}

interface Features {
  readonly headerBytes: number;
  readonly compression: 'zlib' | 'zstd';
  readonly extendedL2: boolean;
}

const NO_FEATURES: Features = { headerBytes: V2_HEADER_BYTES, compression: 'zlib', extendedL2: false };
const ENCRYPTION: Readonly<Record<number, string>> = { 1: 'AES', 2: 'LUKS' };

/** The features of a version 3 header, or why they are refused. */
function inspectFeatures(bytes: Buffer): Features | string {
  const incompatible = bytes.readBigUInt64BE(72);
  const has = (bit: number): boolean => ((incompatible >> BigInt(bit)) & 1n) === 1n;
  if (has(DATA_FILE_BIT)) return 'keeps its data in another file (external data file): convert it to one file first';
  if (has(CORRUPT_BIT)) return 'is marked as corrupt: repair it with qemu-img check -r first';
  if (incompatible >> BigInt(KNOWN_BITS) !== 0n) {
    return `needs features that are not known here (incompatible features 0x${incompatible.toString(16)})`;
  }
  const headerBytes = bytes.readUInt32BE(100);
  if (headerBytes < V3_HEADER_BYTES || headerBytes % 8 !== 0 || headerBytes > bytes.length) {
    return `says that its header has ${headerBytes} bytes, which can't be`;
  }
  const method = headerBytes > V3_HEADER_BYTES ? bytes.readUInt8(104) : 0;
  if (method > 1) return `is compressed by method ${method}, and only zlib and zstd are supported`;
  if (method === 1 && !has(COMPRESSION_BIT)) return 'names a compression that its feature bits deny';
  return { headerBytes, compression: method === 1 ? 'zstd' : 'zlib', extendedL2: has(EXTENDED_L2_BIT) };
}

function backingFile(bytes: Buffer): string | undefined {
  const offset = bytes.readBigUInt64BE(8);
  const length = bytes.readUInt32BE(16);
  if (offset === 0n) return undefined;
  const start = offset > BigInt(bytes.length) ? bytes.length : Number(offset);
  const name = bytes.toString('utf8', start, start + Math.min(length, MAX_BACKING_NAME));
  return name === '' ? 'unnamed' : JSON.stringify(name);
}

/** Walks the header extensions: some name a file or a key even where no feature bit does. */
function refusedExtension(bytes: Buffer, headerBytes: number, clusterBits: number): string | undefined {
  const end = Math.min(bytes.length, 2 ** clusterBits);
  let at = headerBytes;
  while (at + 8 <= end) {
    const type = bytes.readUInt32BE(at);
    const length = bytes.readUInt32BE(at + 4);
    if (type === EXTENSION_END) return undefined;
    if (type === EXTENSION_DATA_FILE) return 'names an external data file: convert it to one file first';
    if (type === EXTENSION_ENCRYPTION) return 'is encrypted (LUKS)';
    at += 8 + Math.ceil(length / 8) * 8;
  }
  // A header that fills its cluster to the byte needs no end mark.
  return at === end || bytes.length >= 2 ** clusterBits ? extensionOverrun(at, end) : 'has more header than was read';
}

const extensionOverrun = (at: number, end: number): string | undefined =>
  at > end ? 'has header extensions that run out of its first cluster' : undefined;

const refused = (why: string): Qcow2Verdict => ({ kind: 'refused', why });
