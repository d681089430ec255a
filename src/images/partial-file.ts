/**
 * A file that is being received: written, hashed and kept sparse as the bytes come.
 *
 * The digest is that of all bytes up to `doneBytes`, also after a break: the running hash lives here, so a resumed
 * download reads nothing again. Not safe against two writers; who owns the key owns the file.
 */
import { createHash, type Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { ImageDigest } from '@eitri/core/contracts';
import { PRIVATE_FILE_MODE } from '../host/atomic-file.js';

/** Blocks of zeros of this size are left out: a hole takes no room and no write. */
const HOLE_BYTES = 64 * 1024;
const ZEROS = Buffer.alloc(HOLE_BYTES);

export class PartialFile {
  private hash: Hash;
  private received = 0;
  private file: FileHandle | undefined;

  constructor(
    readonly path: string,
    private readonly algorithm: ImageDigest['algorithm'],
  ) {
    this.hash = createHash(algorithm);
  }

  get doneBytes(): number {
    return this.received;
  }

  /** The digest of what is there; more may be appended after it. */
  get digest(): ImageDigest {
    return { algorithm: this.algorithm, hex: this.hash.copy().digest('hex') };
  }

  /** Opens for appending, after what is there already. */
  async open(): Promise<void> {
    // Truncated to what was hashed: bytes of a write that failed half-way are cut off.
    this.file = await open(this.path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, PRIVATE_FILE_MODE);
    await this.file.truncate(this.received);
  }

  async append(chunk: Buffer): Promise<void> {
    if (this.file === undefined) throw new Error(`${this.path} is not open`);
    for (let at = 0; at < chunk.length; at += HOLE_BYTES) {
      const block = chunk.subarray(at, at + HOLE_BYTES);
      if (!isZero(block)) await writeWhole(this.file, block, this.received + at);
    }
    this.hash.update(chunk);
    this.received += chunk.length;
  }

  /** Gives the file its full size (holes at its end have none yet) and puts it on disk. */
  async finish(): Promise<void> {
    await this.file?.truncate(this.received);
    await this.file?.sync();
  }

  async close(): Promise<void> {
    const file = this.file;
    this.file = undefined;
    await file?.close();
  }

  /** Back to nothing. */
  async reset(): Promise<void> {
    this.hash = createHash(this.algorithm);
    this.received = 0;
    await this.file?.truncate(0);
  }

  async remove(): Promise<void> {
    await this.close();
    await rm(this.path, { force: true });
  }
}

const isZero = (block: Buffer): boolean => block.equals(ZEROS.subarray(0, block.length));

async function writeWhole(file: FileHandle, block: Buffer, position: number): Promise<void> {
  let written = 0;
  while (written < block.length) {
    const { bytesWritten } = await file.write(block, written, block.length - written, position + written);
    written += bytesWritten;
  }
}
