/**
 * Where everything stands that the agent keeps: the state directory's layout, and the short socket folders of the run
 * directory. Pure: names only, nothing is looked at or made.
 *
 *     <state>/                    0711
 *       lock  control.json  desired.json  identity.json  guest-cidr          0600
 *       images/                   0711, for whoever converts them
 *       volumes/                  0700
 *       vms/<uid>/                0711
 *         keys/  record.json  serial.log  vmm.pid       nobody else's
 *         guest/                  0700, for the VMM's own user: disk.raw  seed.img  vmm.log
 *     <run>/<12 hex of a hash of the uid>/               0700, sockets
 */
import { join } from 'node:path';
import type { HostFacts, VmPaths, VmUid } from '@eitri/core/contracts';
import { bug, isVmUid, maxSocketPathBytes, permanent, shortHash } from '@eitri/core/kit';

/** What decides where an agent keeps its things when no flag does. */
export interface FolderSources {
  readonly facts: Pick<HostFacts, 'os' | 'root'>;
  /** The user's home. */
  readonly home: string;
  /** `$XDG_RUNTIME_DIR`; undefined or empty where there is none. */
  readonly xdgRuntimeDir: string | undefined;
}

export interface StateFolders {
  readonly stateDir: string;
  readonly runDir: string;
}

export const RECORD_NAME = 'record.json';
const GUEST_NAME = 'guest';
const NAME = 'eitri-agent';

/** The folders for these flags; what is not given has its default. */
export function resolveFolders(
  sources: FolderSources,
  flags: { readonly stateDir?: string; readonly runDir?: string } = {},
): StateFolders {
  const stateDir = flags.stateDir ?? defaultStateDir(sources);
  return { stateDir, runDir: flags.runDir ?? defaultRunDir(sources, stateDir) };
}

const defaultStateDir = ({ facts, home }: FolderSources): string =>
  facts.os === 'darwin' ? join(home, `.${NAME}`) : join('/var/lib', NAME);

function defaultRunDir({ facts, home, xdgRuntimeDir }: FolderSources, stateDir: string): string {
  if (facts.os === 'darwin') return join(home, `.${NAME}`, 'run');
  if (facts.root) return join('/run', NAME);
  // Without one there is no folder that is the user's own and goes with the boot; /tmp would be everybody's.
  return xdgRuntimeDir === undefined || xdgRuntimeDir === '' ? join(stateDir, 'run') : join(xdgRuntimeDir, NAME);
}

/** Longest name of a socket, or of a lock beside it, in a VM's run folder: `serial.sock`, `ch.sock.lock`. */
export const MAX_SOCKET_NAME_BYTES = 12;
/** Digits of the uid's hash that name a VM's run folder. */
const RUN_FOLDER_DIGITS = 12;

/** Refuses a run directory in which a socket's path would not fit: at start, not at the first VM. */
export function checkSocketRoom(runDir: string, os: HostFacts['os']): void {
  const limit = maxSocketPathBytes(os);
  const room = limit - 2 - RUN_FOLDER_DIGITS - MAX_SOCKET_NAME_BYTES;
  const bytes = Buffer.byteLength(join(runDir));
  if (bytes <= room) return;
  throw permanent(
    `--run-dir ${runDir} has ${bytes} bytes and may have ${room}, since a socket's path ends at ${limit} bytes on this system: give a shorter one`,
  );
}

export class StatePaths {
  readonly stateDir: string;
  readonly runDir: string;
  /** Held by the one agent of this state directory. */
  readonly lock: string;
  /** Held by the one agent of this run directory, whose sockets stand there. */
  readonly runLock: string;
  /** This directory's id, and the pinned backend. */
  readonly control: string;
  /** What was last accepted from the control plane. */
  readonly desired: string;
  /** Who this host is to its server. */
  readonly identity: string;
  readonly guestCidr: string;
  readonly images: string;
  readonly volumes: string;
  readonly vms: string;

  constructor(folders: StateFolders) {
    const { stateDir, runDir } = folders;
    this.stateDir = stateDir;
    this.runDir = runDir;
    this.lock = join(stateDir, 'lock');
    this.runLock = join(runDir, 'lock');
    this.control = join(stateDir, 'control.json');
    this.desired = join(stateDir, 'desired.json');
    this.identity = join(stateDir, 'identity.json');
    this.guestCidr = join(stateDir, 'guest-cidr');
    this.images = join(stateDir, 'images');
    this.volumes = join(stateDir, 'volumes');
    this.vms = join(stateDir, 'vms');
  }

  readonly record = (uid: VmUid): string => join(this.pathsOf(uid).folder, RECORD_NAME);

  readonly pathsOf = (uid: VmUid): VmPaths => {
    // `..` as an id leaves the folder: the brand promises that it can't be, and a cast could lie.
    if (!isVmUid(uid)) throw bug(`not a uid: ${String(uid)}`);
    const folder = join(this.vms, uid);
    const guestFolder = join(folder, GUEST_NAME);
    return {
      folder,
      guestFolder,
      rootDisk: join(guestFolder, 'disk.raw'),
      seed: join(guestFolder, 'seed.img'),
      vmmLog: join(guestFolder, 'vmm.log'),
      pidFile: join(folder, 'vmm.pid'),
      serialLog: join(folder, 'serial.log'),
      keysFolder: join(folder, 'keys'),
      runFolder: join(this.runDir, shortHash(uid, RUN_FOLDER_DIGITS)),
    };
  };
}
