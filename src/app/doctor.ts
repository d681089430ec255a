/**
 * Says whether this host can be an agent's, one check a line, each with what was found and what to do about it.
 *
 * Owns the judging; what is looked at comes through `DoctorPorts`, so that every sick host can be tried on a healthy one.
 * A check that can't be done is a warning that says so, and never keeps the next from being done. Nothing is changed.
 */
import { join } from 'node:path';
import type { CapabilityNote, HostOs, NetworkFinding } from '@eitri/core/contracts';
import { errorLine, formatBytes, GIB, systemCode } from '@eitri/core/kit';
import { checkSocketRoom } from '../state/index.js';
import { GuestNetworkError } from './guest-network.js';
import type { Places } from './places.js';

export type CheckLevel = 'ok' | 'warn' | 'fail';

export interface Check {
  readonly level: CheckLevel;
  readonly what: string;
  readonly detail: string;
  /** What to do; absent where nothing is to be done. */
  readonly next?: string;
}

/** What stands at a path. */
export interface FoundFile {
  readonly kind: 'folder' | 'file' | 'other';
  readonly userId: number;
  readonly writable: boolean;
  /** Whether users other than its owner and group may pass through it. */
  readonly passable: boolean;
}

/** A plugin, as far as there is something to say of it. */
export interface FoundPlugin {
  readonly packageName: string;
  /** Why it is off. */
  readonly refused?: string;
  /** Set: only because this host is not one that it runs on. */
  readonly unfit?: true;
  readonly notes: readonly string[];
}

export interface RunningAgent {
  readonly version: string;
  readonly pid: number;
  readonly backend: string;
  readonly guestNetwork: string;
}

/** The network plugin that a start would use, and what it sees on this host. */
export interface FoundNetwork {
  readonly name: string;
  readonly because: string;
  readonly cidr: string;
  readonly findings: readonly NetworkFinding[];
}

export interface DoctorPorts {
  readonly nodeVersion: string;
  readonly os: HostOs;
  readonly userId: number;
  readonly places: Places;
  /** The manifest folder, where one was named. */
  readonly local: string | undefined;
  /** Undefined: nothing is there. */
  readonly look: (path: string) => Promise<FoundFile | undefined>;
  readonly freeBytes: (path: string) => Promise<number>;
  /** The path that PATH gives for a tool. */
  readonly which: (tool: string) => Promise<string | undefined>;
  /** Whether /dev/kvm can be used, and if not, why. */
  readonly kvm: () => Promise<{ readonly usable: boolean; readonly why?: string }>;
  /** Chooses, loads and checks the backend as a start would; rejects with what a start would say. */
  readonly backend: () => Promise<{
    readonly name: string;
    readonly because: string;
    readonly vmm: string;
    /** Sentences: what works differently here. */
    readonly notes: readonly CapabilityNote[];
  }>;
  /** Every plugin that is there, tried; see `surveyPlugins`. */
  readonly plugins: () => Promise<readonly FoundPlugin[]>;
  /** The guests' network as it stands; undefined: no plugin gives one. Rejects with what would refuse a start. */
  readonly network: () => Promise<FoundNetwork | undefined>;
  /** What the agent that answers in the run directory is, and what it uses; undefined: none answers. */
  readonly agent: () => Promise<RunningAgent | undefined>;
  /** Rejects with a sentence when the folder is no control plane. */
  readonly marker: (folder: string) => Promise<{ readonly lineage: string }>;
}

const LEAST_NODE = [20, 19] as const;
const MARK_FREE_BYTES = 10 * GIB;
const LEAST_FREE_BYTES = GIB;

export async function examine(ports: DoctorPorts): Promise<readonly Check[]> {
  const checks: readonly (readonly [string, (ports: DoctorPorts) => Finding])[] = [
    ['node', checkNode],
    ['state directory', checkStateDir],
    ['run directory', checkRunDir],
    ['backend', checkBackend],
    ['plugins', checkPlugins],
    ['guest network', checkNetwork],
    ['kvm', checkKvm],
    ['qemu-img', (of) => checkTool(of, 'qemu-img', 'qcow2 images can not be used', 'qemu-utils')],
    ['xorriso', (of) => checkTool(of, 'xorriso', 'no seed can be made, so no VM starts', 'xorriso')],
    ['passage', checkPassage],
    ['free space', checkFreeSpace],
    ['agent', checkAgent],
    ...(ports.local === undefined ? [] : [['manifest folder', checkMarker] as const]),
  ];
  const found: Check[] = [];
  for (const [what, check] of checks) {
    try {
      const { notes = [], ...finding } = await check(ports);
      found.push({ what, ...finding }, ...notes);
    } catch (error) {
      found.push({ what, level: 'warn', detail: `could not be checked: ${errorLine(error)}` });
    }
  }
  return found;
}

export const isFit = (checks: readonly Check[]): boolean => checks.every(({ level }) => level !== 'fail');

type Finding = Promise<Omit<Check, 'what'> & { readonly notes?: readonly Check[] }>;

// eslint-disable-next-line @typescript-eslint/require-await
async function checkNode({ nodeVersion }: DoctorPorts): Finding {
  const [major = 0, minor = 0] = nodeVersion.replace(/^v/, '').split('.').map(Number);
  const [wantMajor, wantMinor] = LEAST_NODE;
  if (major > wantMajor || (major === wantMajor && minor >= wantMinor)) return { level: 'ok', detail: nodeVersion };
  return { level: 'fail', detail: nodeVersion, next: `install Node ${wantMajor}.${wantMinor} or newer` };
}

async function checkStateDir(ports: DoctorPorts): Finding {
  const { stateDir } = ports.places;
  const found = await ports.look(stateDir);
  if (found === undefined) return await checkCanMake(ports, stateDir, '--state-dir');
  if (found.kind !== 'folder') {
    return { level: 'fail', detail: `${stateDir} is no folder`, next: 'move it away, or choose another --state-dir' };
  }
  if (found.userId !== ports.userId) {
    const detail = `${stateDir} belongs to user ${found.userId}, and this is user ${ports.userId}`;
    return { level: 'fail', detail, next: 'run as its owner (often with sudo), or choose another --state-dir' };
  }
  if (!found.writable) {
    return {
      level: 'fail',
      detail: `${stateDir} can not be written`,
      next: 'remount it, or choose another --state-dir',
    };
  }
  return { level: 'ok', detail: stateDir };
}

/** The nearest folder above that is there must let us make one. */
async function checkCanMake(ports: DoctorPorts, path: string, flag: string): Finding {
  for (let at = join(path, '..'); ; at = join(at, '..')) {
    const above = await ports.look(at);
    if (above === undefined && at !== '/') continue;
    if (above?.kind === 'folder' && above.writable) return { level: 'ok', detail: `${path}, made at the first start` };
    const detail = `${path} is not there, and can not be made in ${at}`;
    return { level: 'fail', detail, next: `run as root, or choose another ${flag}` };
  }
}

async function checkRunDir(ports: DoctorPorts): Finding {
  const { runDir } = ports.places;
  try {
    checkSocketRoom(runDir, ports.os);
  } catch (error) {
    return { level: 'fail', detail: errorLine(error), next: 'choose a shorter --run-dir' };
  }
  const found = await ports.look(runDir);
  if (found === undefined) return await checkCanMake(ports, runDir, '--run-dir');
  if (found.kind !== 'folder' || !found.writable) {
    const detail = `${runDir} ${found.kind === 'folder' ? 'can not be written' : 'is no folder'}`;
    return { level: 'fail', detail, next: 'choose another --run-dir' };
  }
  return { level: 'ok', detail: runDir };
}

async function checkBackend(ports: DoctorPorts): Finding {
  try {
    const { name, because, vmm, notes } = await ports.backend();
    const told = notes.map(({ level, text }): Check => ({
      what: 'note',
      level: level === 'warn' ? 'warn' : 'ok',
      detail: text,
    }));
    return { level: 'ok', detail: `${name} (${because}), ${vmm}`, notes: told };
  } catch (error) {
    if (error instanceof GuestNetworkError)
      return { level: 'warn', detail: 'not looked at: the guest network, which it needs, comes first' };
    // The sentence of a start that is refused says what to type.
    return { level: 'fail', detail: errorLine(error) };
  }
}

/** What is off, one line each. Whether the chosen one can be used, the backend's own line says. */
async function checkPlugins(ports: DoctorPorts): Finding {
  const found = await ports.plugins();
  const off = found.filter(({ refused }) => refused !== undefined);
  const notes = [
    ...off.map(({ packageName, refused, unfit }) => ({
      what: 'plugin',
      level: unfit === true ? ('ok' as const) : ('warn' as const),
      detail: `${packageName} is off: ${refused ?? ''}`,
    })),
    ...found.flatMap((one) =>
      one.notes.map((note) => ({ what: 'plugin', level: 'ok' as const, detail: `${one.packageName}: ${note}` })),
    ),
  ];
  return { level: 'ok', detail: `${found.length - off.length} of ${found.length} can be used`, notes };
}

async function checkNetwork(ports: DoctorPorts): Finding {
  try {
    const found = await ports.network();
    if (found === undefined) return { level: 'ok', detail: 'each guest has one of its own' };
    const { name, because, cidr, findings } = found;
    const agent = await ports.agent();
    const started = agent?.guestNetwork === 'user' ? undefined : agent;
    const notes = findings.map((finding) =>
      finding.atStart === true && started !== undefined ? missingBeside(started, finding) : finding,
    );
    return { level: 'ok', detail: `${name} (${because}), ${cidr}`, notes };
  } catch (error) {
    // Nobody can choose here; why not stands with the backend.
    if (!(error instanceof GuestNetworkError)) return { level: 'warn', detail: 'not looked at: no backend is chosen' };
    return { level: 'fail', detail: errorLine(error) };
  }
}

const missingBeside = ({ pid }: RunningAgent, { what }: NetworkFinding): NetworkFinding => ({
  what,
  level: 'fail',
  detail: `it is not here, although an agent runs (pid ${pid}): guests are cut off, or the agent is in another network namespace`,
  next: 'eitri-agent network repair',
});

async function checkKvm(ports: DoctorPorts): Finding {
  if (ports.os !== 'linux') return { level: 'ok', detail: 'not needed on this system' };
  const { usable, why } = await ports.kvm();
  if (usable) return { level: 'ok', detail: '/dev/kvm opens; the backend has a note where it fails all the same' };
  return {
    level: 'warn',
    detail: `/dev/kvm can not be used${why === undefined ? '' : ` (${why})`}: guests are emulated, ten times slower or more`,
    next: 'enable virtualization in the firmware, load kvm_intel or kvm_amd, and be in the group kvm',
  };
}

async function checkTool(ports: DoctorPorts, tool: string, without: string, debian: string): Finding {
  const path = await ports.which(tool);
  if (path !== undefined) return { level: 'ok', detail: path };
  return { level: 'fail', detail: `not on PATH: ${without}`, next: `install it (on Debian: apt install ${debian})` };
}

/** As root, images are converted by an unprivileged user, who must get to them. */
async function checkPassage(ports: DoctorPorts): Finding {
  if (ports.os !== 'linux' || ports.userId !== 0) return { level: 'ok', detail: 'images are converted by this user' };
  const { stateDir } = ports.places;
  for (let at = stateDir; ; at = join(at, '..')) {
    const found = await ports.look(at);
    if (found?.passable === false) {
      const detail = `qemu-img runs as another user, who may not pass through ${at}: qcow2 images can not be used`;
      return { level: 'warn', detail, next: `chmod o+x ${at}, or choose another --state-dir` };
    }
    if (at === '/') return { level: 'ok', detail: `every user may pass through to ${stateDir}` };
  }
}

async function checkFreeSpace(ports: DoctorPorts): Finding {
  let at = ports.places.stateDir;
  while (at !== '/' && (await ports.look(at)) === undefined) at = join(at, '..');
  const free = await ports.freeBytes(at);
  const detail = `${formatBytes(free)} at ${at}`;
  if (free < LEAST_FREE_BYTES) return { level: 'fail', detail, next: 'free some, or choose another --state-dir' };
  if (free < MARK_FREE_BYTES) return { level: 'warn', detail, next: 'images and disks soon need more' };
  return { level: 'ok', detail };
}

async function checkAgent(ports: DoctorPorts): Finding {
  const agent = await ports.agent();
  if (agent === undefined) return { level: 'ok', detail: 'none answers', next: 'eitri-agent run --local DIR' };
  // It may have been started with other flags than those that were judged above.
  const { version, pid, backend, guestNetwork } = agent;
  return {
    level: 'ok',
    detail: `version ${version} runs, pid ${pid}, with backend ${backend} and guest network ${guestNetwork}`,
  };
}

async function checkMarker(ports: DoctorPorts): Finding {
  const folder = ports.local ?? '';
  try {
    const { lineage } = await ports.marker(folder);
    return { level: 'ok', detail: `${folder}, lineage ${lineage}` };
  } catch (error) {
    const hint = systemCode(error) === undefined ? errorLine(error) : `${folder}: ${errorLine(error)}`;
    return { level: 'fail', detail: hint, next: `eitri-agent local init ${folder}` };
  }
}
