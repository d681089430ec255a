/**
 * What a history must come to once its faults are over: everything as wanted, nothing left of what was destroyed, and
 * rest. Answers with sentences about what is not so.
 */
import type { DesiredLife, VmRecord, VmStatus } from '@eitri/core/contracts';
import type { FileWorld } from '../file-world.js';
import { MemoryPublisher } from '../memory-publisher.js';
import type { Scene } from './scene.js';

/**
 * Why the world is not where it is wanted; empty: it is. `fresh`: no agent's writing was interrupted since a start, which
 * takes away the folders that have no record.
 */
export function unsettled(scene: Scene, fresh = false): readonly string[] {
  const { world } = scene;
  if (scene.hangs) return ['a call still hangs'];
  const lives = world.current()?.lives ?? [];
  const troubles = lives.flatMap((life) => {
    const trouble = troubleOf(world, life);
    return trouble === undefined ? [] : [`${life.id} (${life.uid}): ${trouble}`];
  });
  const named = new Set(lives.map(({ uid }) => uid));
  for (const uid of scene.everyLife()) if (!named.has(uid)) troubles.push(...leftOf(world, uid, fresh));
  return [...troubles, ...strayOf(world, named, fresh)];
}

function troubleOf(world: FileWorld, life: DesiredLife): string | undefined {
  const status = world.agent?.engine.report().vms.find((vm) => vm.uid === life.uid);
  if (status === undefined) return 'is not in the report';
  const vmm = world.host.vmm(life.uid);
  const record = world.record(life.uid);
  const says = `${status.phase} ${status.reason ?? ''} ${status.message ?? ''}`;
  switch (life.kind) {
    case 'tombstoned':
      return `is not destroyed: ${says}`;
    case 'vanished':
      if (!life.held) return `is not destroyed: ${says}`;
      if (status.reason !== 'HeldMassVanish') return `is held, and says ${says}`;
      return (status.phase === 'Running') === (vmm !== undefined) ? undefined : `is held: ${says}`;
    case 'present':
      break;
  }
  if (life.spec.power === 'stopped') {
    if (status.phase !== 'Stopped' || vmm !== undefined) return `is not stopped: ${says}`;
    if (record?.bootId !== undefined || record?.stop !== undefined) return 'is stopped, and its record knows of a VMM';
    return status.ports.length === 0 ? undefined : 'is stopped, and its ports are reported';
  }
  if (status.phase === 'Running') {
    if (vmm?.pid !== status.pid) return `says Running with pid ${String(status.pid)}, the VMM is ${String(vmm?.pid)}`;
    if (record?.bootId !== world.host.bootId || record.stop?.cancelled === false || record.intent?.step === 'boot') {
      return `runs, and its record says ${JSON.stringify({ bootId: record?.bootId, stop: record?.stop, intent: record?.intent })}`;
    }
    return portsTrouble(world, life, status);
  }
  if (vmm !== undefined) return `runs, and says ${says}`;
  if (status.phase === 'Pending' && status.reason === 'Capacity') return undefined;
  if (status.phase === 'Stopped' && staysStopped(life, record)) return undefined;
  return `does not run: ${says}`;
}

function portsTrouble(world: FileWorld, life: DesiredLife, status: VmStatus): string | undefined {
  const publisher = world.agent?.publisher;
  if (!(publisher instanceof MemoryPublisher)) return 'has no publisher';
  const held = publisher.held(life.uid).length;
  const wanted = life.spec.exposures.length;
  return held === wanted && status.ports.length === wanted
    ? undefined
    : `wants ${String(wanted)} ports, ${String(held)} are held, ${String(status.ports.length)} are reported`;
}

/** The guest ended by itself, and its declaration says that it is not started again. */
const staysStopped = (life: DesiredLife, record: VmRecord | undefined): boolean =>
  record?.lastExit?.cause === 'self' &&
  (life.spec.restart === 'never' || (life.spec.restart === 'on-failure' && record.lastExit.code === 0));

/** What belongs to nobody who is wanted. */
function strayOf(world: FileWorld, named: ReadonlySet<DesiredLife['uid']>, fresh: boolean): readonly string[] {
  const { network } = world.host;
  const taps = [...named].reduce((sum, uid) => sum + network.taps(uid).length, 0);
  return [
    ...world
      .recorded()
      .filter((uid) => (world.record(uid) === undefined ? fresh : !named.has(uid)))
      .map((uid) => `the folder of ${uid}`),
    ...world.host
      .vmms()
      .filter(({ uid }) => !named.has(uid))
      .map(({ uid }) => `a VMM of ${uid}`),
    ...network
      .reserved()
      .filter(({ uid }) => !named.has(uid))
      .map(({ uid }) => `the address of ${uid}`),
    ...(network.taps().length === taps ? [] : [`${String(network.taps().length - taps)} taps`]),
  ].map((what) => `${what} is nobody's`);
}

function leftOf(world: FileWorld, uid: DesiredLife['uid'], fresh: boolean): readonly string[] {
  const { folder, runFolder } = world.pathsOf(uid);
  const publisher = world.agent?.publisher;
  const left = [
    ...world.host.list(folder),
    ...world.host.list(runFolder),
    ...world.host.network.taps(uid),
    ...(world.host.network.reservationOf(uid) === undefined ? [] : ['its address']),
    ...(world.host.vmm(uid) === undefined ? [] : ['its VMM']),
    ...[...world.disks.claims].filter(([, owner]) => owner === uid).map(([path]) => `its claim on ${path}`),
    ...(world.record(uid) === undefined ? [] : ['its record']),
    ...(fresh && world.recorded().includes(uid) ? ['its folder'] : []),
    ...(publisher instanceof MemoryPublisher && publisher.held(uid).length > 0 ? ['its ports'] : []),
    ...(world.agent?.engine.report().vms.some((vm) => vm.uid === uid) === true ? ['its line in the report'] : []),
  ];
  return left.map((what) => `${what} is left of ${uid}, which is destroyed`);
}
