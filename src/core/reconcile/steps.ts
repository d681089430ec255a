/**
 * Carries out one action. Each executor announces its intent in the record, does one thing, and writes down that it is
 * done; what was done before a crash is found done, or is done again without harm.
 */
import type { Intent, IntentStep, PublishState, VmId, VmRecord, VmUid } from '../contracts/index.js';
import type { Semaphore } from '../kit/index.js';
import { formatBytes, GIB, permanent } from '../kit/index.js';
import type { ActionMap, ActionName } from './actions.js';
import { stopUnderWay } from './decide.js';
import {
  adopted,
  askedToStop,
  booted,
  calmed,
  ended,
  failureCleared,
  specApplied,
  stopCancelled,
  stopForgotten,
  withDisk,
  withImage,
  withSeed,
  withVolumes,
} from './left-behind.js';
import type { StartFacts } from './left-behind.js';
import type { EnginePorts } from './ports.js';
import { instanceOf, newRecord } from './record.js';

/** What an executor may do to its VM's worker. */
export interface StepContext {
  readonly uid: VmUid;
  readonly id: VmId;
  readonly ports: EnginePorts;
  /** The record; a bug where there is none. */
  readonly record: () => VmRecord;
  /** Writes it, and resolves when it is on disk. */
  readonly save: (record: VmRecord) => Promise<void>;
  /** Its folder is gone: there is no record any more. */
  readonly removed: () => void;
  readonly say: (type: string, message: string, level?: 'info' | 'warn' | 'error') => void;
  readonly progress: (type: string, message: string, fraction: number | undefined) => void;
  /** It waits for one of a limited number of places, by the name of the limit; undefined: it has one now. */
  readonly throttled: (by: string | undefined) => void;
  readonly setPorts: (ports: readonly PublishState[]) => void;
}

type Executors = {
  readonly [N in ActionName]: (context: StepContext, action: ActionMap[N], signal: AbortSignal) => Promise<void>;
};

export const executors: Executors = {
  create: async (context, { spec }) => {
    const { uid, id, ports } = context;
    const paths = ports.state.pathsOf(uid);
    await context.save(newRecord({ uid, id, spec, backend: ports.platform.backend, paths, now: ports.clock.now() }));
    context.say('vm.accepted', `accepted: ${spec.cpus} vCPU, ${spec.memoryMib} MiB`);
  },

  fetchImage: async (context, _action, signal) => {
    const { ports } = context;
    const release = await turn(context, ports.createGate, '--max-concurrent-creates', signal);
    try {
      await context.save(intended(context, 'fetchImage'));
      const image = await fetchImage(context, signal);
      await context.save(withImage(context.record(), image.digest, image.sizeBytes));
      context.say(
        'image.ready',
        `image ready: ${formatBytes(image.sizeBytes)}, ${image.digest.algorithm} ${image.digest.hex.slice(0, 12)}`,
      );
    } finally {
      release();
    }
  },

  prepareDisk: async (context, _action, signal) => {
    const { ports } = context;
    if (context.record().bootAttempted) throw permanent('the disk of a VM that was booted is never made again');
    const release = await turn(context, ports.createGate, '--max-concurrent-creates', signal);
    try {
      await context.save(intended(context, 'prepareDisk'));
      const image = await fetchImage(context, signal);
      await ports.platform.provisioner.prepareRootDisk(instanceOf(context.record()), image.path, signal);
      const bytes = await ports.disks.sizeOf(context.record().paths.rootDisk);
      if (bytes === undefined) throw new Error(`no disk at ${context.record().paths.rootDisk} after it was prepared`);
      await context.save(withDisk(context.record(), image.digest, Math.ceil(bytes / GIB)));
      context.say('disk.ready', `root disk ready: ${formatBytes(bytes)}`);
    } finally {
      release();
    }
  },

  growDisk: async (context, { diskGib }, signal) => {
    const record = context.record();
    await context.ports.disks.growDisk(record.paths.rootDisk, diskGib, signal);
    await context.save({ ...context.record(), diskGib });
    context.say('disk.grown', `root disk grown to ${diskGib} GiB`);
  },

  prepareVolumes: async (context, _action, signal) => {
    await context.save(intended(context, 'prepareVolumes'));
    const { uid, spec } = context.record();
    const volumePaths: string[] = [];
    for (const volume of spec.volumes) {
      const made = await context.ports.disks.ensureVolume({ uid, name: volume.name, sizeGib: volume.sizeGib }, signal);
      volumePaths.push(made.path);
    }
    await context.save(withVolumes(context.record(), volumePaths));
  },

  buildSeed: async (context, _action, signal) => {
    await context.save(intended(context, 'buildSeed'));
    const { uid, spec, mac, namedMac, paths } = context.record();
    const seed = await context.ports.seeds.build(
      {
        uid,
        spec,
        mac,
        ...(spec.networks.length > 0 ? { namedMac } : {}),
        path: paths.seed,
        keysFolder: paths.keysFolder,
      },
      signal,
    );
    await context.save(withSeed(context.record(), seed.hostKeys));
    context.say('seed.ready', 'cloud-init seed ready');
  },

  boot: async (context, { cause }, signal) => {
    const { ports } = context;
    const release = await turn(context, ports.bootGate, 'the host’s limit of starts at a time', signal);
    try {
      const before = context.record();
      if ((await ports.disks.sizeOf(before.paths.rootDisk)) === undefined) {
        throw permanent(
          `the root disk ${before.paths.rootDisk} is missing: put it back and stop and start the VM, or delete it`,
          {
            code: 'VmmFailed',
          },
        );
      }
      // From this write on the disk belongs to the guest: it is never made anew.
      await context.save({
        ...intended(context, 'boot'),
        bootAttempted: true,
        paths: ports.state.pathsOf(context.uid),
      });
      context.say('vm.booting', BOOTING[cause]);
      await ports.platform.provisioner.boot(instanceOf(context.record()), signal);
      await context.save(booted(context.record(), startFacts(ports)));
      context.say('vm.booted', 'started');
    } finally {
      release();
    }
  },

  adopt: async (context) => {
    const { ports } = context;
    await context.save(adopted(context.record(), startFacts(ports)));
    context.say('vm.adopted', 'adopted: its VMM was started by an agent that ended before it could write it down');
  },

  noteExit: async (context, action, signal) => {
    const { ports } = context;
    const { provisioner, publisher } = ports.platform;
    const vm = instanceOf(context.record());
    // There is nothing to power off: this stops the console of a guest that is gone.
    await provisioner.shutdown(vm, 'powerButton', signal);
    await publisher?.release(context.uid, signal);
    context.setPorts([]);
    const failed = action.cause === 'self' && action.code !== 0;
    const reason = failed ? await provisioner.failureReason(vm, signal) : undefined;
    await context.save(ended(context.record(), action, { now: ports.clock.now(), reason }));
    const how = action.code === undefined ? '' : `, code ${action.code}`;
    if (action.cause === 'stop') context.say('vm.stopped', `powered off${how}`);
    else if (action.cause === 'hostReboot') context.say('vm.lost', 'ended with the host; it is started again');
    else
      context.say(
        'vm.exited',
        `ended by itself${how}${reason === undefined ? '' : `: ${reason}`}`,
        failed ? 'warn' : 'info',
      );
  },

  shutdown: async (context, { step }, signal) => {
    const before = context.record();
    const stop = stopUnderWay(before);
    await context.save({ ...intended(context, 'shutdown'), stop });
    await context.ports.platform.provisioner.shutdown(instanceOf(before), step, signal);
    await context.save(askedToStop(context.record(), step, stop));
    // Also when it is gone by then: that a guest was killed is told, and not only that it is off.
    context.say('vm.stopping', STOPPING[step], step === 'powerButton' ? 'info' : 'warn');
  },

  cancelStop: async (context) => {
    const record = context.record();
    if (record.stop === undefined) return;
    await context.save(stopCancelled(record));
    context.say('vm.stop.cancelled', 'wanted running again while it goes down');
  },

  forgetStop: async (context) => {
    await context.save(stopForgotten(context.record()));
  },

  applySpec: async (context, action) => {
    await context.save(specApplied(context.record(), action));
    if (action.moment === 'live') return;
    context.say('vm.spec.applied', 'the changed declaration holds from now on');
  },

  calm: async (context) => {
    await context.save(calmed(context.record()));
  },

  publish: async (context, _action, signal) => {
    const { exposures } = context.record().spec;
    const { publisher } = context.ports.platform;
    if (publisher === undefined) {
      const why = 'nothing on this host can publish ports';
      context.setPorts(exposures.map((exposure) => ({ exposure, state: 'refused', why })));
      return;
    }
    context.setPorts(await publisher.publish(context.uid, exposures, signal));
  },

  resume: async (context, _action, signal) => {
    await context.ports.platform.provisioner.resume(instanceOf(context.record()), signal);
  },

  clearFailure: async (context) => {
    await context.save(failureCleared(context.record()));
  },

  destroy: async (context, _action, signal) => {
    const { ports, uid } = context;
    if (!context.record().destroying) {
      await context.save({ ...intended(context, 'destroy'), destroying: true });
      context.say('vm.destroying', 'destroying');
    }
    await ports.platform.provisioner.destroy(instanceOf(context.record()), signal);
    await ports.platform.publisher?.release(uid, signal);
    await ports.disks.releaseVolumes(uid, signal);
    // The name is free before the record goes: a crash between the two finds a record that nobody names and that says
    // `destroying`, and finishes it. The other way round, the same uid would be made again.
    await ports.desired.settled(uid);
    await ports.state.removeVm(uid, signal);
    context.removed();
    context.say('vm.destroyed', 'destroyed');
  },

  settle: async (context, _action, signal) => {
    // Its first record may be on disk although the write of it failed, at the folder's fsync. Nothing ever came of it, and
    // it goes before the name does: once nobody names it, the next agent would keep it for ever.
    await context.ports.state.removeVm(context.uid, signal);
    await context.ports.desired.settled(context.uid);
  },
};

const BOOTING = {
  first: 'starting for the first time',
  start: 'starting',
  restart: 'starting again after it ended',
  hostReboot: 'starting again after the host rebooted',
} as const;

const STOPPING = {
  powerButton: 'power button pressed',
  terminate: 'did not power off in time: asked its VMM to end',
  kill: 'did not end: killed',
} as const;

/** A place among those that may do this at a time; the release. */
async function turn(context: StepContext, gate: Semaphore, limit: string, signal: AbortSignal): Promise<() => void> {
  if (!gate.full) return await gate.acquire(signal);
  context.throttled(limit);
  const release = await gate.acquire(signal);
  context.throttled(undefined);
  return release;
}

const startFacts = ({ host, clock }: EnginePorts): StartFacts => ({ bootId: host.bootId, now: clock.now() });

function intended(context: StepContext, step: IntentStep): VmRecord {
  const { clock, host } = context.ports;
  const intent: Intent = { step, at: clock.now(), bootId: host.bootId };
  return { ...context.record(), intent };
}

async function fetchImage(context: StepContext, signal: AbortSignal): ReturnType<EnginePorts['images']['ensure']> {
  return await context.ports.images.ensure(
    context.record().spec.image,
    ({ step, doneBytes, totalBytes }) => {
      const fraction = totalBytes === undefined || totalBytes === 0 ? undefined : Math.min(1, doneBytes / totalBytes);
      const percent = fraction === undefined ? '' : ` (${Math.floor(fraction * 100)} %)`;
      const verb = step === 'download' ? 'downloading image' : 'converting image';
      context.progress(`image.${step}`, `${verb}: ${formatBytes(doneBytes)}${percent}`, fraction);
    },
    signal,
  );
}
