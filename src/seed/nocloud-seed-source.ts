/**
 * Builds the seed volume: ISO 9660, label `cidata`, Rock Ridge and Joliet, by xorriso.
 *
 * Owns the volume at its path and a working folder beside it while it builds. Equal input gives equal bytes, whenever and
 * wherever it is built: the clock, the time zone, the operator's xorriso settings and the files' own times are all kept
 * out. Without that an unchanged VM's seed would look changed. Host keys are another's (`HostKeyStore`).
 */
import { chmod, mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RUNNER } from '@eitri/core/contracts';
import type { BuiltSeed, Runner, SeedRequest, SeedSource } from '@eitri/core/contracts';
import { permanent, retryable } from '@eitri/core/kit';
import { inject, injectable } from 'tsyringe';
import { placeFile } from '../host/place-file.js';
import { seedDocuments } from './documents.js';
import type { HostKeyStore } from './host-key-store.js';
import { inspectUserData } from './user-data.js';

export interface NoCloudSeedOptions {
  readonly hostKeys: HostKeyStore;
}

const SEED_MODE = 0o600;
const WORK_FOLDER_MODE = 0o700;
const EPOCH = new Date(0);

@injectable()
export class NoCloudSeedSource implements SeedSource {
  constructor(
    @inject(RUNNER) private readonly runner: Runner,
    private readonly options: NoCloudSeedOptions,
  ) {}

  readonly build = async (request: SeedRequest, signal: AbortSignal): Promise<BuiltSeed> => {
    signal.throwIfAborted();
    const { uid, spec } = request;
    // Before the keys: a seed that is refused makes nothing.
    const { overridesHostKeys } = inspectUserData(spec.userData);
    const hostKey = await this.options.hostKeys.ensure(request.keysFolder, signal);
    const documents = seedDocuments({
      uid,
      hostname: spec.hostname,
      sshKeys: spec.sshKeys,
      userData: spec.userData,
      mac: request.mac,
      namedMac: request.namedMac,
      hostKey,
    });
    try {
      await this.write(documents, request.path, signal);
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw retryable(`build the seed of ${spec.id}`, { cause });
    }
    return { hostKeys: overridesHostKeys ? [] : [hostKey.publicLine.trim()] };
  };

  private async write(documents: Readonly<Record<string, string>>, path: string, signal: AbortSignal): Promise<void> {
    const folder = `${path}.work`;
    const partial = `${path}.partial`;
    const clear = async (): Promise<void> => {
      await Promise.all([rm(folder, { recursive: true, force: true }), rm(partial, { force: true })]);
    };
    await clear();
    try {
      // The volume holds the guest's private host key: nobody else may look into the folder while it is made.
      await mkdir(folder, { mode: WORK_FOLDER_MODE });
      for (const [name, text] of Object.entries(documents)) {
        await writeFile(join(folder, name), text, { mode: SEED_MODE });
        await utimes(join(folder, name), EPOCH, EPOCH);
      }
      await utimes(folder, EPOCH, EPOCH);
      await this.master(folder, partial, signal);
      await chmod(partial, SEED_MODE);
      await placeFile(partial, path);
    } finally {
      await clear();
    }
  }

  private async master(folder: string, output: string, signal: AbortSignal): Promise<void> {
    if ((await this.runner.which('xorriso')) === undefined) {
      throw permanent('xorriso is not installed, and seeds are made by it: install the package xorriso');
    }
    await this.runner.run(
      {
        command: 'xorriso',
        args: ['-no_rc', '-as', 'mkisofs', '-quiet', '-V', 'cidata', '-J', '-r', '-o', output, folder],
        env: { SOURCE_DATE_EPOCH: '0', TZ: 'UTC', LC_ALL: 'C' },
      },
      signal,
    );
  }
}
