/**
 * What may happen to a host in a history, as plain data, and the histories that a seed stands for.
 *
 * Steps name VMs by their place in `NAMES`, so that a history from which steps were dropped still means something.
 */
import type { PortMember, VmFaults } from '@eitri/conformance';
import type { PowerState, RestartPolicy } from '@eitri/core/contracts';
import type { PlaneKind, Staleness } from './plane.js';
import { Prng } from './prng.js';

export const NAMES = ['a', 'b', 'c'] as const;
export type Name = (typeof NAMES)[number];

/** What of a declaration changes. */
export interface Change {
  readonly cpus?: number;
  readonly memoryMib?: number;
  readonly diskGib?: number;
  readonly image?: string;
  readonly power?: PowerState;
  readonly restart?: RestartPolicy;
  readonly volumes?: number;
  readonly ports?: number;
}

/** How the machine goes down: in good order, or without power; then `cut` says what of the unsynced is lost. */
export type GoingDown = { readonly by: 'order' } | { readonly by: 'powerCut'; readonly cut: number };

type What =
  | { readonly do: 'declare'; readonly vm: Name; readonly change: Change }
  | { readonly do: 'tombstone' | 'vanish' | 'takeBack' | 'bearAgain' | 'hide'; readonly vm: Name }
  /** Everything is missing at once: an emptied folder. */
  | { readonly do: 'vanishAll' }
  /** The operator lets go what the brake holds. */
  | { readonly do: 'release' }
  /** Somebody who must not be heard speaks. */
  | { readonly do: 'stale'; readonly what: Staleness }
  | { readonly do: 'raiseEpoch' }
  /** From now on no byte fits on the disk of the state, or again. */
  | { readonly do: 'diskFull'; readonly full: boolean }
  /** So many calls of the state's file system fail, from the n-th on. */
  | { readonly do: 'diskFails'; readonly after: number; readonly times: number }
  /** The guest ends by itself. */
  | { readonly do: 'exit'; readonly vm: Name; readonly code: number }
  | { readonly do: 'faults'; readonly vm: Name; readonly faults: Partial<VmFaults> }
  | { readonly do: 'fail' | 'loseAnswer'; readonly member: PortMember; readonly times: number }
  /** The call is not answered until its pass was aborted. */
  | { readonly do: 'hang'; readonly member: PortMember }
  /** SIGKILL of the agent at the n-th beginning or end of a call from now. */
  | { readonly do: 'kill'; readonly at: number; readonly downMs: number; readonly reboot: GoingDown | undefined }
  | { readonly do: 'reboot'; readonly down: GoingDown }
  | { readonly do: 'jump'; readonly ms: number }
  | { readonly do: 'contact'; readonly there: boolean }
  | { readonly do: 'noImages' | 'stuckTap'; readonly vm: Name }
  | { readonly do: 'heal' };

export type Step = What & { readonly thenMs: number };

export interface History {
  readonly seed: number;
  readonly plane: PlaneKind;
  readonly caps: { readonly vcpus: number; readonly memoryMib: number; readonly diskGib: number };
  readonly reserveMib: number;
  readonly steps: readonly Step[];
}

const MEMBERS: readonly PortMember[] = [
  'stateStore.writeRecord', 'stateStore.writeRecord', 'stateStore.removeVm', 'stateStore.loadRecords',
  'desiredStore.settled', 'imageSource.ensure', 'diskService.cloneRootDisk', 'diskService.ensureVolume',
  'diskService.growDisk', 'diskService.sizeOf', 'diskService.releaseVolumes', 'seedSource.build',
  'provisioner.prepareRootDisk', 'provisioner.boot', 'provisioner.boot', 'provisioner.observe', 'provisioner.address',
  'provisioner.failureReason', 'provisioner.resume', 'provisioner.shutdown', 'provisioner.destroy', 'network.reserveIp', 'network.createTap',
  'network.deleteTap', 'pumpHooks.ensure', 'pumpHooks.stop', 'portPublisher.publish', 'portPublisher.release',
]; // prettier-ignore

const FAULTS: readonly Partial<VmFaults>[] = [
  { bootFails: 1 },
  { bootFails: 5 },
  { refusesBoot: 'no firmware' },
  { startingMs: 20_000 },
  { startingMs: Number.POSITIVE_INFINITY },
  { attachMs: 4_000 },
  { diskMs: 4_000 },
  { diesAfterMs: 0, exitCode: 1 },
  { diesAfterMs: 3_000, exitCode: 1, cause: 'triple fault' },
  { diesAfterMs: 3_000, exitCode: 0 },
  { powerOffMs: 4_000 },
  { powerOffMs: 60_000 },
  { ignoresButton: true },
  { buttonFails: true },
  { ignoresButton: true, ignoresTerminate: true },
  { ignoresButton: true, refusesSignals: true },
  { unknown: 'pid 7 may not be signalled' },
  { fullDisk: true },
];

/** The history of a seed. */
export function historyOf(seed: number): History {
  const random = new Prng(seed);
  const capped = random.chance(0.35);
  const length = 6 + random.below(20);
  return {
    seed,
    plane: random.chance(0.5) ? 'local' : 'server',
    caps: {
      vcpus: capped && random.chance(0.5) ? 2 + random.below(3) : 0,
      memoryMib: capped && random.chance(0.5) ? 512 * (1 + random.below(3)) : 0,
      diskGib: capped && random.chance(0.5) ? 3 + random.below(6) : 0,
    },
    reserveMib: capped && random.chance(0.3) ? 3_072 : 0,
    steps: [
      ...NAMES.slice(0, 1 + random.below(NAMES.length)).map((vm) => declare(random, vm)),
      ...Array.from({ length }, () => stepOf(random)),
    ],
  };
}

const declare = (random: Prng, vm: Name): Step => ({
  do: 'declare',
  vm,
  change: changeOf(random),
  thenMs: random.pick([0, 0, 250, 5_000]),
});

function changeOf(random: Prng): Change {
  return {
    ...(random.chance(0.3) ? { cpus: 1 + random.below(3) } : {}),
    ...(random.chance(0.3) ? { memoryMib: 256 * (1 + random.below(3)) } : {}),
    ...(random.chance(0.3) ? { diskGib: 1 + random.below(4) } : {}),
    ...(random.chance(0.1) ? { image: random.pick(['tiny', 'other']) } : {}),
    ...(random.chance(0.4) ? { power: random.pick(['running', 'running', 'stopped']) } : {}),
    ...(random.chance(0.3) ? { restart: random.pick(['always', 'on-failure', 'never']) } : {}),
    ...(random.chance(0.3) ? { volumes: random.below(3) } : {}),
    ...(random.chance(0.3) ? { ports: random.below(3) } : {}),
  };
}

function stepOf(random: Prng): Step {
  const thenMs = random.pick([0, 250, 1_000, 5_000, 5_000, 15_000, 30_000]);
  const vm = random.pick(NAMES);
  const at = random.below(100);
  if (at < 22) return { do: 'declare', vm, change: changeOf(random), thenMs };
  if (at < 29) return { do: 'tombstone', vm, thenMs };
  if (at < 33) return { do: 'vanish', vm, thenMs };
  if (at < 35) return { do: 'vanishAll', thenMs };
  if (at < 36) return { do: 'release', thenMs };
  if (at < 42) return { do: 'takeBack', vm, thenMs };
  if (at < 44) return { do: 'bearAgain', vm, thenMs };
  if (at < 46) return { do: 'hide', vm, thenMs };
  if (at < 48) return { do: 'stale', what: random.pick(['lineage', 'epoch', 'revision']), thenMs };
  if (at < 49) return { do: 'raiseEpoch', thenMs };
  if (at < 54) return { do: 'exit', vm, code: random.pick([0, 1]), thenMs };
  if (at < 64) return { do: 'faults', vm, faults: random.pick(FAULTS), thenMs };
  if (at < 69) return { do: 'fail', member: random.pick(MEMBERS), times: random.pick([1, 1, 4]), thenMs };
  if (at < 71) return { do: 'diskFull', full: random.chance(0.7), thenMs };
  if (at < 74) return { do: 'diskFails', after: random.below(30), times: random.pick([1, 1, 1, 6]), thenMs };
  if (at < 77) return { do: 'loseAnswer', member: random.pick(MEMBERS), times: random.pick([1, 1, 4]), thenMs };
  if (at < 80) return { do: 'hang', member: random.pick(MEMBERS), thenMs };
  if (at < 88) {
    const downMs = random.pick([0, 0, 5_000, 30_000]);
    const reboot = random.chance(0.3) ? goingDown(random) : undefined;
    return { do: 'kill', at: random.below(random.pick([40, 200])), downMs, reboot, thenMs };
  }
  if (at < 91) return { do: 'reboot', down: goingDown(random), thenMs };
  if (at < 93) return { do: 'jump', ms: random.pick([-3_600_000, 7_200_000]), thenMs };
  if (at < 96) return { do: 'contact', there: random.chance(0.6), thenMs };
  if (at < 97) return { do: 'noImages', vm, thenMs };
  if (at < 98) return { do: 'stuckTap', vm, thenMs };
  return { do: 'heal', thenMs };
}

const goingDown = (random: Prng): GoingDown =>
  random.chance(0.4) ? { by: 'order' } : { by: 'powerCut', cut: random.below(2 ** 31) };
