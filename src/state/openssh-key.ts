/**
 * Ed25519 keys in the text formats of OpenSSH, which Node can't write: `openssh-key-v1`, unencrypted, and the one-line
 * public form. Pure. Source of the private format: OpenSSH's PROTOCOL.key. Held against `ssh-keygen` by
 * test/integration/state/host-keys.test.ts.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';

const TYPE = 'ssh-ed25519';
const MAGIC = Buffer.from('openssh-key-v1\0', 'latin1');
const BEGIN = '-----BEGIN OPENSSH PRIVATE KEY-----';
const END = '-----END OPENSSH PRIVATE KEY-----';
const LINE_LENGTH = 70;
const BLOCK = 8;
const SEED_BYTES = 32;
/** What PKCS #8 puts before an ed25519 seed (RFC 8410). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The private key's file. The same seed gives the same text. */
export function encodePrivateKey(seed: Uint8Array): string {
  const publicKey = publicKeyOf(seed);
  // The format wants the same number twice, random, to tell a wrong passphrase; there is none here.
  const check = publicKey.subarray(0, 4);
  const secret = Buffer.concat([
    check,
    check,
    field(TYPE),
    field(publicKey),
    field(Buffer.concat([seed, publicKey])),
    field(''),
  ]);
  const padding = Buffer.from(Array.from({ length: (BLOCK - (secret.length % BLOCK)) % BLOCK }, (_, i) => i + 1));
  const body = Buffer.concat([
    MAGIC,
    field('none'),
    field('none'),
    field(''),
    uint32(1),
    field(publicBlob(publicKey)),
    field(Buffer.concat([secret, padding])),
  ]);
  const lines = body.toString('base64').match(new RegExp(`.{1,${LINE_LENGTH}}`, 'g')) ?? [];
  return `${[BEGIN, ...lines, END].join('\n')}\n`;
}

/** The seed of a private key that `encodePrivateKey` could have written; undefined for anything else. */
export function decodePrivateKey(text: string): Buffer | undefined {
  const match = /^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END OPENSSH PRIVATE KEY-----\n$/.exec(
    text,
  );
  const reader = new Reader(Buffer.from(match?.[1] ?? '', 'base64'));
  if (!reader.skip(MAGIC)) return undefined;
  const [cipher, kdf, options] = [reader.field(), reader.field(), reader.field()];
  if (cipher?.toString() !== 'none' || kdf?.toString() !== 'none' || options?.length !== 0) return undefined;
  if (!reader.skip(uint32(1)) || reader.field() === undefined) return undefined;
  const secret = reader.field();
  if (secret === undefined) return undefined;
  const inner = new Reader(secret.subarray(8));
  const [type, publicKey, pair] = [inner.field(), inner.field(), inner.field()];
  if (type?.toString() !== TYPE || publicKey === undefined || pair?.length !== 2 * SEED_BYTES) return undefined;
  const seed = pair.subarray(0, SEED_BYTES);
  // A flipped bit anywhere shows here: the text must be the one that this seed gives.
  return encodePrivateKey(seed) === text ? seed : undefined;
}

/** `ssh-ed25519 AAAA…`, without a comment. */
export const publicLineOf = (seed: Uint8Array): string => `${TYPE} ${publicBlob(publicKeyOf(seed)).toString('base64')}`;

function publicKeyOf(seed: Uint8Array): Buffer {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEAD, seed]), format: 'der', type: 'pkcs8' });
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-SEED_BYTES);
}

const publicBlob = (publicKey: Uint8Array): Buffer => Buffer.concat([field(TYPE), field(publicKey)]);

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function field(value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

class Reader {
  private at = 0;

  constructor(private readonly bytes: Buffer) {}

  skip(expected: Buffer): boolean {
    const found = this.bytes.subarray(this.at, this.at + expected.length);
    this.at += expected.length;
    return found.equals(expected);
  }

  field(): Buffer | undefined {
    if (this.at + 4 > this.bytes.length) return undefined;
    const length = this.bytes.readUInt32BE(this.at);
    const start = this.at + 4;
    if (start + length > this.bytes.length) return undefined;
    this.at = start + length;
    return this.bytes.subarray(start, this.at);
  }
}
