/**
 * Makes qcow2 headers, byte by byte, the good ones and the bad ones.
 */
export interface HeaderFields {
  readonly version?: number;
  readonly backing?: string;
  readonly clusterBits?: number;
  readonly size?: bigint;
  readonly encryption?: number;
  readonly incompatible?: bigint;
  readonly headerBytes?: number;
  readonly compression?: number;
  readonly extensions?: readonly { readonly type: number; readonly data: Buffer }[];
}

export function qcow2Header(fields: HeaderFields = {}): Buffer {
  const { version = 3, clusterBits = 16, size = 2n ** 30n, extensions = [], headerBytes = 112 } = fields;
  const bytes = Buffer.alloc(65_536);
  bytes.writeUInt32BE(0x514649fb, 0);
  bytes.writeUInt32BE(version, 4);
  if (fields.backing !== undefined) {
    bytes.writeBigUInt64BE(4096n, 8);
    bytes.writeUInt32BE(Buffer.byteLength(fields.backing), 16);
    bytes.write(fields.backing, 4096);
  }
  bytes.writeUInt32BE(clusterBits, 20);
  bytes.writeBigUInt64BE(size, 24);
  bytes.writeUInt32BE(fields.encryption ?? 0, 32);
  let at = 72;
  if (version >= 3) {
    bytes.writeBigUInt64BE(fields.incompatible ?? 0n, 72);
    bytes.writeUInt32BE(4, 96);
    bytes.writeUInt32BE(headerBytes, 100);
    if (headerBytes > 104) bytes.writeUInt8(fields.compression ?? 0, 104);
    at = headerBytes;
  }
  for (const { type, data } of extensions) {
    bytes.writeUInt32BE(type, at);
    bytes.writeUInt32BE(data.length, at + 4);
    data.copy(bytes, at + 8);
    at += 8 + Math.ceil(data.length / 8) * 8;
  }
  return bytes;
}
