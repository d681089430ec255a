/**
 * Who uses which volume: a claim file beside each volume in use, `<name>.json`, naming the one VM.
 *
 * A claim appears whole or not at all and never over another's: it is written aside, synced, and hard-linked to its name,
 * which fails where a name stands. It outlives the agent, and so does the guest that writes to the volume. A claim that
 * can't be read is somebody's all the same: it blocks its volume until a person has looked.
 */
import { link, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random, VmUid } from '@eitri/core/contracts';
import { isVmId, permanent, retryable, stableJson, systemCode } from '@eitri/core/kit';
import { z } from 'zod';
import { readIfThere, removeDurably, syncFolder, writeAtomically } from '../host/atomic-file.js';

const claimSchema = z.looseObject({ version: z.literal(1), uid: z.string().min(1) });
const CLAIM_LIMIT_BYTES = 4096;
const CLAIM_SUFFIX = '.json';

export class VolumeClaims {
  constructor(
    private readonly folder: string,
    private readonly random: Random,
  ) {}

  /** Claims a volume for a VM; says whether the claim is new. Permanent: another VM holds it. */
  async take(name: string, uid: VmUid): Promise<{ readonly isNew: boolean }> {
    const path = this.pathOf(name);
    // No volume and no claim can have such a name, and `sweepTemps` takes it away after a crash.
    const aside = join(this.folder, `.claim.${this.random.uuid().slice(-12)}.tmp`);
    try {
      await writeAtomically(aside, `${stableJson({ version: 1, uid })}\n`);
      await link(aside, path);
      await syncFolder(this.folder);
      return { isNew: true };
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    } finally {
      await rm(aside, { force: true });
    }
    const holder = await this.holderAt(path);
    if (holder === uid) return { isNew: false };
    if (holder === undefined) throw retryable(`the claim of volume ${name} went away while it was read`);
    throw permanent(
      `volume ${name} is in use by the VM with uid ${holder}: one VM at a time may use a volume, so destroy that VM, or take the volume out of its spec, first`,
      { code: 'SpecInvalid' },
    );
  }

  async drop(name: string): Promise<void> {
    await removeDurably(this.pathOf(name));
  }

  /** Names of the volumes that a VM holds. Claims that can't be read are nobody's to drop. */
  async heldBy(uid: VmUid): Promise<readonly string[]> {
    const held: string[] = [];
    for (const file of await namesIn(this.folder)) {
      const name = file.slice(0, -CLAIM_SUFFIX.length);
      if (!file.endsWith(CLAIM_SUFFIX) || !isVmId(name)) continue;
      const holder = await this.holderAt(this.pathOf(name)).catch(() => undefined);
      if (holder === uid) held.push(name);
    }
    return held.sort();
  }

  private async holderAt(path: string): Promise<string | undefined> {
    const text = await readIfThere(path, CLAIM_LIMIT_BYTES);
    if (text === undefined) return undefined;
    try {
      return claimSchema.parse(JSON.parse(text)).uid;
    } catch (cause) {
      throw retryable(
        `${path} says which VM uses the volume, and can't be read: remove it once no VM uses the volume`,
        {
          cause,
        },
      );
    }
  }

  private pathOf(name: string): string {
    return join(this.folder, `${name}${CLAIM_SUFFIX}`);
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}
