/**
 * The SSH host keys of guests: made once for a life, kept in its `keys` folder, never made again. A guest whose keys
 * changed looks like an impostor to everybody who knew it, so a file that can't be read is an error, not a reason to
 * make a new key.
 */
import { join } from 'node:path';
import type { Random } from '@eitri/core/contracts';
import { KeyedMutex } from '@eitri/core/kit';
import { ensureFolder, PRIVATE_FOLDER_MODE, readIfThere, writeAtomically } from '../host/atomic-file.js';
import { decodePrivateKey, encodePrivateKey, publicLineOf } from './openssh-key.js';
import { stateBadError, stateWriteError } from './state-error.js';

export interface HostKey {
  /** The private key as OpenSSH keeps it, for `ssh_host_ed25519_key`. */
  readonly privateOpenSsh: string;
  /** `ssh-ed25519 AAAA…`. */
  readonly publicLine: string;
}

const KEY_NAME = 'ssh_host_ed25519_key';
const MAX_BYTES = 64 * 2 ** 10;
const SEED_BYTES = 32;

export class HostKeyStore {
  private readonly locks = new KeyedMutex();

  constructor(private readonly random: Pick<Random, 'secretBytes'>) {}

  /** The key in this folder, made now if there is none. Idempotent; on disk when it resolves. */
  readonly ensure = (keysFolder: string): Promise<HostKey> =>
    this.locks.run(keysFolder, async () => {
      const path = join(keysFolder, KEY_NAME);
      const text = await readIfThere(path, MAX_BYTES);
      if (text === undefined) return this.make(keysFolder, path);
      const seed = decodePrivateKey(text);
      if (seed === undefined) throw stateBadError(path, 'it is no host key of ours any more');
      return { privateOpenSsh: text, publicLine: publicLineOf(seed) };
    });

  private async make(keysFolder: string, path: string): Promise<HostKey> {
    const seed = Buffer.from(this.random.secretBytes(SEED_BYTES));
    const privateOpenSsh = encodePrivateKey(seed);
    try {
      await ensureFolder(keysFolder, PRIVATE_FOLDER_MODE);
      await writeAtomically(path, privateOpenSsh);
    } catch (cause) {
      throw stateWriteError('write a host key', path, cause);
    }
    return { privateOpenSsh, publicLine: publicLineOf(seed) };
  }
}
