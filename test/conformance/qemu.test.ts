/**
 * QEMU's backend keeps the promises of the provisioner's contract, on the real QEMU with the host's real supervisor.
 *
 * Faults act on the host: a wrapper in front of QEMU's binary plays a QEMU that fails at once, the supervisor's kernel
 * refuses signals, somebody else holds the socket of QMP.
 *
 * Tried on both of its networks: on QEMU's own, and on that of a plugin, which is in memory here. Its taps are names only, so
 * the wrapper puts QEMU's own network in the place of a tap: no device appears on the machine that runs this, and it needs
 * no root. What QEMU does with a real tap is not tried here; its arguments are golden (test/golden/qemu).
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import {
  FakeNetwork,
  FakePumpHooks,
  provisionerSuite,
  type ProvisionerContext,
  type PumpCall,
} from '@eitri/conformance';
import type { Supervisor, VmInstance } from '@eitri/core/contracts';
import { tinyGuest } from '../support/guest.js';
import { qemuLab, realSupervisor, type Agent } from '../support/qemu/lab.js';
import { until } from '../support/until.js';

const QEMU = process.arch === 'arm64' ? 'qemu-system-aarch64' : 'qemu-system-x86_64';

/** Processes whose arguments name this socket, whoever started them; a zombie has no arguments. */
function pidsOf(socket: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes(`unix:${socket},server=on,wait=off`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

const qmpOf = (vm: VmInstance): string => join(vm.paths.runFolder, 'qmp.sock');

async function toggle(pids: Set<number>, vm: VmInstance, on: boolean): Promise<void> {
  for (const pid of pidsOf(qmpOf(vm))) {
    if (on) pids.add(pid);
    else pids.delete(pid);
  }
  return Promise.resolve();
}

/** A socket file that nobody listens on: Node removes the name that it bound, and no other. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.x`, resolve));
  renameSync(`${path}.x`, path);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
}

/** The host's supervisor under a kernel that refuses signals to some, and even the question whether others are there. */
const hinderedSupervisor = (refused: ReadonlySet<number>, untouchable: ReadonlySet<number>): Supervisor =>
  realSupervisor({
    signalProcess: (pid, name) => {
      if (untouchable.has(pid) || (name !== 0 && refused.has(pid))) {
        throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
      }
      process.kill(pid, name);
    },
  });

async function qemuContext(guestNetwork: 'user' | 'plugin'): Promise<ProvisionerContext> {
  const lab = qemuLab();
  const network = guestNetwork === 'plugin' ? new FakeNetwork() : undefined;
  const told: PumpCall[] = [];
  const vms = new Map<string, VmInstance>();
  const refused = new Set<number>();
  const untouchable = new Set<number>();
  const bin = join(lab.folder, 'bin');
  const dying = join(lab.folder, 'dying');
  mkdirSync(bin);
  mkdirSync(dying);
  const wrapper = join(bin, QEMU);
  // A VM's uid is an argument of its own (-uuid).
  writeFileSync(
    wrapper,
    `#!/bin/sh
for word; do
  if [ -f "${dying}/$word" ]; then cat "${dying}/$word" >&2; exit 1; fi
  shift
  case $word in tap,id=*) word=\${word#tap,id=}; word=user,id=\${word%%,*},restrict=on ;; esac
  set -- "$@" "$word"
done
exec ${QEMU} "$@"
`,
  );
  chmodSync(wrapper, 0o755);
  let qemuBin = wrapper;
  const newLife = (): Agent =>
    lab.agent({
      qemuBin,
      qemu: {
        ...{ queryLimitMs: 500, bootWatchMs: 5_000 },
        deviceExists: async (name) => Promise.resolve(network?.taps().includes(name) === true),
      },
      guestNetwork,
      ...(network === undefined ? {} : { network }),
      supervisor: hinderedSupervisor(refused, untouchable),
      pumps: new FakePumpHooks({
        told,
        vmmsOf: (uid) => {
          const vm = vms.get(uid);
          return vm === undefined ? [] : pidsOf(qmpOf(vm));
        },
      }),
    });
  const say = (cause: string | undefined): string =>
    `${cause === undefined ? '' : `${QEMU}: ${cause}\n`}${QEMU}: warning: a cache was dropped\n`;
  return {
    provisioner: newLife().provisioner,
    restart: async () => Promise.resolve(newLife().provisioner),
    newVm: async () => {
      const vm = lab.newVm(vms.size + 1);
      vms.set(vm.uid, vm);
      return Promise.resolve(vm);
    },
    imagePath: await tinyGuest(),
    // The one level here is time itself: cases let it pass between two looks.
    pass: async (ms) => {
      const end = performance.now() + ms;
      await until(() => performance.now() >= end, { timeoutMs: ms + 60_000, what: 'time passes' });
    },
    patienceMs: 150_000,
    probes: {
      vmms: async (vm) => Promise.resolve(pidsOf(qmpOf(vm))),
      pumpCalls: () => told,
      taps: async (vm) => Promise.resolve(network?.taps(vm.uid) ?? []),
      reservation: async (vm) => Promise.resolve(network?.reservationOf(vm.uid)),
      sockets: async ({ paths }) => Promise.resolve(existsSync(paths.runFolder) ? readdirSync(paths.runFolder) : []),
      recorded: async ({ paths }) => Promise.resolve(existsSync(paths.pidFile)),
      disk: async ({ paths: { rootDisk } }) => {
        if (!existsSync(rootDisk)) return Promise.resolve(undefined);
        // The image's part tells them apart; the rest is a gigabyte of nothing.
        const head = readFileSync(rootDisk).subarray(0, 2 ** 25);
        const content = `${createHash('sha256').update(head).digest('hex')} ${statSync(rootDisk).size.toString()}`;
        return Promise.resolve({ file: statSync(rootDisk).ino.toString(), content });
      },
    },
    faults: {
      missingVmm: async () => {
        qemuBin = 'qemu-system-none';
        return Promise.resolve();
      },
      refuseSignals: (vm, on) => toggle(refused, vm, on),
      untouchable: (vm, on) => toggle(untouchable, vm, on),
      vmmDiesAtStart: async (vm, cause) => {
        writeFileSync(join(dying, vm.uid), say(cause));
        return Promise.resolve();
      },
      crash: async (vm, cause) => {
        const pids = pidsOf(qmpOf(vm));
        await appendFile(vm.paths.vmmLog, say(cause));
        for (const pid of pids) process.kill(pid, 'SIGKILL');
        await until(() => pids.every((pid) => !existsSync(`/proc/${pid.toString()}`)));
      },
      // A stopped guest takes no notice of anything.
      ignoreButton: async (vm) => lab.command(qmpOf(vm), 'stop'),
      silentApi: async (vm) => {
        await lab.hold(qmpOf(vm));
      },
      ...(network === undefined
        ? {}
        : {
            networkFails: async (fails: boolean) => {
              network.failing = fails ? 'bridge eit0: no such device' : undefined;
              return Promise.resolve();
            },
            tapWontGo: async (vm: VmInstance, stuck: boolean) => {
              if (stuck) network.stuckTaps.add(vm.uid);
              else network.stuckTaps.delete(vm.uid);
              return Promise.resolve();
            },
          }),
      staleSockets: async ({ paths }) => {
        mkdirSync(paths.runFolder, { recursive: true });
        for (const name of ['qmp.sock', 'serial.sock']) await leaveSocket(join(paths.runFolder, name));
      },
    },
    dispose: async () => {
      for (const vm of vms.values()) for (const pid of pidsOf(qmpOf(vm))) process.kill(pid, 'SIGKILL');
      return Promise.resolve();
    },
  };
}

const NO_FULL_DISK = 'tried with a file system that is really full, by test/e2e/agent/full-disk.test.ts';
const WITHOUT = {
  'a guest stands still on a full disk: observed paused for it, and resumed once there is room: the same VMM runs':
    NO_FULL_DISK,
} as const;
const NO_TAP = 'guests sit on QEMU’s own network here; tried on a plugin’s network below';

provisionerSuite('provisioner: qemu', () => qemuContext('user'), {
  timeoutMs: 240_000,
  without: {
    'the network fails in boot: its own error with `NetworkFailed`, no VMM, and a later boot works': NO_TAP,
    "a tap won't go: destroy rejects, and a later destroy works": NO_TAP,
    ...WITHOUT,
  },
});

provisionerSuite('provisioner: qemu on a plugin’s network', () => qemuContext('plugin'), {
  timeoutMs: 240_000,
  without: WITHOUT,
});
