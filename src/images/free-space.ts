/**
 * Refuses to begin, or to go on with, what would fill the disk under running guests.
 */
import { statfs } from 'node:fs/promises';
import { formatBytes, retryable } from '@eitri/core/kit';

/** Bytes that an unprivileged user may still write below a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

export class FreeSpace {
  constructor(
    private readonly folder: string,
    private readonly reserveBytes: number,
    private readonly freeBytes: (folder: string) => Promise<number>,
  ) {}

  /** Retryable when so many more bytes would reach into the reserve. */
  async require(what: string, moreBytes: number): Promise<void> {
    const free = await this.freeBytes(this.folder);
    if (free - moreBytes >= this.reserveBytes) return;
    throw retryable(
      `no space for ${what}: it needs ${formatBytes(moreBytes)} more in ${this.folder}, where ${formatBytes(free)} are free ` +
        `and ${formatBytes(this.reserveBytes)} are kept in reserve; free some, or lower --image-cache-max-gb`,
      { code: 'Capacity' },
    );
  }
}
