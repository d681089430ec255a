/**
 * Where this backend's files of one guest stand, beside those that every backend has: the two sockets and the guest's
 * own copy of the firmware's variables.
 *
 * `GuestPaths` remembers the paths that a caller gave, which may be of a former run directory, and falls back to what
 * derives from the uid: a console may be opened before the first look at its guest.
 */
import { join } from 'node:path';
import type { BackendHost, HostOs, VmInstance, VmPaths, VmUid } from '@eitri/core/contracts';

export const qmpSocketOf = (paths: VmPaths): string => join(paths.runFolder, 'qmp.sock');
export const serialSocketOf = (paths: VmPaths): string => join(paths.runFolder, 'serial.sock');
/** Written by the guest's firmware (boot entries, secure boot keys): copied once, never replaced. */
export const varsFileOf = (paths: VmPaths): string => join(paths.guestFolder, 'vars.fd');

export const FOLDER_MODE = 0o700;
export const FILE_MODE = 0o600;

/** The longest path that a unix socket's address holds; Node cuts a longer one without a word. */
export const maxSocketPathBytes = (os: HostOs): number => (os === 'darwin' ? 103 : 107);

export class GuestPaths {
  private readonly known = new Map<VmUid, VmPaths>();

  constructor(private readonly derive: BackendHost['vmPaths']) {}

  readonly remember = (vm: VmInstance): void => {
    this.known.set(vm.uid, vm.paths);
  };

  readonly forget = (uid: VmUid): void => {
    this.known.delete(uid);
  };

  readonly of = async (uid: VmUid): Promise<VmPaths> => this.known.get(uid) ?? (await this.derive(uid));
}
