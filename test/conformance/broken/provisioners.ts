/**
 * Backends that break one promise each: for every case of the provisioner's suite one that it must catch. A case without
 * one does not compile.
 */
import { consoleSocket, type FakeProvisioner, type FakeWorld, type ProvisionerCaseName } from '@eitri/conformance';
import type { Provisioner, VmInstance, VmUid } from '@eitri/core/contracts';

/** Changes some members of the good fake. */
export type Breaker = (good: FakeProvisioner, world: FakeWorld) => Partial<Provisioner>;

const calm = (): AbortSignal => new AbortController().signal;

/** A backend that knows only what it booted itself. */
function ownOnly(good: FakeProvisioner): {
  readonly boot: Provisioner['boot'];
  readonly knows: (vm: VmInstance) => boolean;
} {
  const own = new Set<VmUid>();
  return {
    boot: async (vm, signal) => {
      await good.boot(vm, signal);
      own.add(vm.uid);
    },
    knows: (vm) => own.has(vm.uid),
  };
}

/** A backend whose destroy takes a refusal for success. */
const destroysRegardless: Breaker = (good, { host, pumps }) => ({
  destroy: async (vm, signal) => {
    try {
      await good.destroy(vm, signal);
    } catch {
      await pumps.stop(vm.uid);
      host.network.stuckTaps.delete(vm.uid);
      await host.network.deleteTap(vm.uid, calm());
    }
  },
});

export const brokenProvisioners = {
  'capabilities are asked again and again: the same answer, with and without a VM': (good, { host }) => ({
    capabilities: async (signal) => ({
      ...(await good.capabilities(signal)),
      notes: [{ level: 'info', text: `${host.vmms().length.toString()} guests run` }],
    }),
  }),
  'capabilities are asked: every field is there, as plain data': (good) => ({
    capabilities: async (signal) => ({ ...(await good.capabilities(signal)), limits: new Map() as never }),
  }),
  'the host is fit: preflight resolves, ten times': (good) => {
    let calls = 0;
    return {
      preflight: async (signal) => {
        await good.preflight(signal);
        if (++calls > 1) throw new Error('the probe of an earlier preflight is still there');
      },
    };
  },
  'what every VM needs is missing: preflight rejects, permanent, with a sentence': () => ({
    preflight: () => Promise.reject(new Error('spawn ENOENT')),
  }),
  'the root disk is prepared ten times: the same disk each time': (good, { host }) => ({
    prepareRootDisk: async (vm, basePath, signal) => {
      const before = host.files.get(vm.paths.rootDisk)?.content ?? '';
      await good.prepareRootDisk(vm, basePath, signal);
      host.writeFile(vm.paths.rootDisk, `${before}appended `);
    },
  }),
  'a VM that never was: every member answers, and nothing comes of it': (good, { host }) => ({
    shutdown: (vm, step, signal) =>
      host.starts(vm.uid) === 0
        ? Promise.reject(new Error(`no such VM: ${vm.spec.id}`))
        : good.shutdown(vm, step, signal),
  }),
  'addresses are asked for before a boot: none is known, and none is reserved by asking': (_good, { host }) => ({
    address: (vm, signal) => host.network.reserveIp(vm.uid, vm.mac, signal),
  }),
  'addresses are asked for after a boot: the reserved one, and no other': () => ({
    address: () => Promise.resolve('192.0.2.1'),
  }),
  'boot resolved: one VMM runs and is recorded': (good, { host }) => ({
    boot: async (vm, signal) => {
      await good.boot(vm, signal);
      host.remove(vm.paths.pidFile);
    },
  }),
  'boot resolved: the pump of this VM was ensured, after its VMM ran, and no other pump': (good, { pumps }) => ({
    boot: async (vm, signal) => {
      await pumps.ensure(vm.uid);
      await good.boot(vm, signal);
    },
  }),
  'boot is called ten times: one VMM, the same pid': (good, { host }) => ({
    boot: async (vm, signal) => {
      host.signal(vm.uid, 'SIGKILL');
      await good.boot(vm, signal);
    },
  }),
  'boot under an aborted signal: it rejects, and nothing was started': (good) => ({
    boot: (vm) => good.boot(vm, calm()),
  }),
  'boot is aborted half-way: a guest that lives on, or a rejection and no VMM': (good) => ({
    boot: async (vm, signal) => {
      await good.boot(vm, calm());
      signal.throwIfAborted();
    },
  }),
  "boot's signal is aborted when the guest runs: the guest runs on": (good, { host }) => ({
    boot: async (vm, signal) => {
      await good.boot(vm, signal);
      signal.addEventListener('abort', () => {
        host.signal(vm.uid, 'SIGKILL');
      });
    },
  }),
  'the network fails in boot: its own error with `NetworkFailed`, no VMM, and a later boot works': (good) => ({
    boot: (vm, signal) =>
      good.boot(vm, signal).catch(() => {
        throw new Error('could not start the VM');
      }),
  }),
  'sockets of a dead VMM stand in the way: boot works': (good, { host }) => ({
    boot: (vm, signal) =>
      host.files.has(consoleSocket(vm)) ? Promise.reject(new Error('address in use')) : good.boot(vm, signal),
  }),
  'the VMM dies at once: boot rejects and leaves none, or it is observed gone; the reason is its own': (good) => ({
    // Believes that a process that was started runs.
    boot: (vm, signal) => good.boot(vm, signal).catch(() => undefined),
    observe: () => Promise.resolve({ state: 'running', pid: 1 }),
  }),
  'a VM before its first boot is observed: absent, ten times, and nothing comes of it': (good, { host }) => ({
    observe: async (vm, signal) => {
      await host.network.reserveIp(vm.uid, vm.mac, signal);
      return good.observe(vm, signal);
    },
  }),
  'a running VM is observed ten times: the same answer, and nothing changes': (good, { pumps }) => ({
    observe: async (vm, signal) => {
      await pumps.ensure(vm.uid);
      return good.observe(vm, signal);
    },
  }),
  'a crashed VM is observed ten times: nothing is cleaned up, nothing is started': (good, { host }) => ({
    observe: async (vm, signal) => {
      const seen = await good.observe(vm, signal);
      if (seen.state === 'exited') await host.network.deleteTap(vm.uid, signal);
      return seen;
    },
  }),
  'observe runs beside a boot: it never rejects, and the boot is not disturbed': (good) => {
    const busy = new Set<VmUid>();
    return {
      boot: async (vm, signal) => {
        busy.add(vm.uid);
        await good.boot(vm, signal).finally(() => busy.delete(vm.uid));
      },
      observe: (vm, signal) =>
        busy.has(vm.uid) ? Promise.reject(new Error(`${vm.spec.id} is busy`)) : good.observe(vm, signal),
    };
  },
  'a guest stands still on a full disk: observed paused for it, and resumed once there is room: the same VMM runs':
    () => ({
      resume: () => Promise.resolve(),
    }),
  'resume of a VM that runs, that is gone, or that never was: ten times, and nothing comes of it': (good) => ({
    resume: async (vm, signal) => {
      await good.boot(vm, signal).catch(() => undefined);
    },
  }),
  'the VMM lives and does not answer: starting or what it was, never gone, and boot starts no second one': (good) => ({
    observe: async (vm, signal) => {
      const seen = await good.observe(vm, signal);
      return seen.state === 'starting' ? { state: 'absent' } : seen;
    },
  }),
  'the VMM may not be touched: observed unknown; boot, kill and destroy reject and change nothing': destroysRegardless,
  'the VMM crashed: observed exited or absent, and the reason is the root cause, not the warning after it': (
    _good,
    { host },
  ) => ({
    // The last line, whatever it says.
    failureReason: (vm) => Promise.resolve(host.saidBy(vm.uid)?.warnings.at(-1)),
  }),
  'the VMM crashed with nothing but a warning said: no reason is told': (_good, { host }) => ({
    failureReason: (vm) => {
      const said = host.saidBy(vm.uid);
      return Promise.resolve(said?.cause ?? said?.warnings.at(-1));
    },
  }),
  'a VM is booted again after a crash: the reason of the earlier run is not told of this one': (good) => {
    const log = new Map<VmUid, string>();
    const read = async (vm: VmInstance): Promise<string | undefined> => {
      const reason = await good.failureReason(vm, calm());
      if (reason !== undefined) log.set(vm.uid, reason);
      return log.get(vm.uid);
    };
    return {
      boot: async (vm, signal) => {
        await read(vm);
        await good.boot(vm, signal);
      },
      failureReason: read,
    };
  },
  'a VM is booted again after a crash: a new VMM, from the same disk': (good, { host }) => ({
    boot: async (vm, signal) => {
      if (host.vmm(vm.uid) === undefined && host.starts(vm.uid) > 0) {
        host.remove(vm.paths.rootDisk);
        host.writeFile(vm.paths.rootDisk, 'image tiny');
      }
      await good.boot(vm, signal);
    },
  }),
  'the power button is pressed: the guest goes, and then its pump is stopped': (_good, { host, pumps }) => ({
    shutdown: async (vm) => {
      await pumps.stop(vm.uid);
      host.press(vm.uid);
      return 'gone';
    },
  }),
  'the power button is ignored: asked, ten times, and the guest runs on and keeps its pump': (good, { pumps }) => ({
    shutdown: async (vm, step, signal) => {
      const progress = await good.shutdown(vm, step, signal);
      await pumps.stop(vm.uid);
      return progress;
    },
  }),
  'terminate is asked for: the VMM ends, and its pump is stopped': (good) => ({
    shutdown: (vm, step, signal) => (step === 'terminate' ? Promise.resolve('gone') : good.shutdown(vm, step, signal)),
  }),
  'kill is asked for: the VMM ends, and its pump is stopped': (_good, { host }) => ({
    shutdown: (vm) => {
      host.signal(vm.uid, 'SIGKILL');
      return Promise.resolve('gone');
    },
  }),
  'kill is asked for under an aborted signal: it is done all the same': (good) => ({
    shutdown: async (vm, step, signal) => {
      signal.throwIfAborted();
      return good.shutdown(vm, step, signal);
    },
  }),
  'a kill is refused by the kernel: shutdown rejects, the guest keeps its pump, and a later kill works': (good) => ({
    shutdown: (vm, step, signal) => good.shutdown(vm, step, signal).catch(() => 'gone'),
  }),
  'a VM that is not running is shut down: gone, ten times, by every step': (good, { host }) => ({
    shutdown: (vm, step, signal) =>
      host.vmm(vm.uid) === undefined
        ? Promise.reject(new Error(`${vm.spec.id} is not running`))
        : good.shutdown(vm, step, signal),
  }),
  'a VM is booted again after a shutdown: another VMM, the same disk, the same address, a pump again': (
    good,
    { host },
  ) => ({
    shutdown: async (vm, step, signal) => {
      const progress = await good.shutdown(vm, step, signal);
      if (progress === 'gone') await host.network.deleteTap(vm.uid, signal);
      return progress;
    },
  }),
  'a running VM is destroyed: no process, socket, tap, reservation or record is left, and the disk is': (
    good,
    { host },
  ) => ({
    destroy: async (vm, signal) => {
      await good.destroy(vm, signal);
      host.remove(vm.paths.folder);
    },
  }),
  'destroy is called ten times: it resolves, and nothing is left': (good, { host }) => ({
    destroy: async (vm, signal) => {
      if (!host.files.has(vm.paths.pidFile)) throw new Error(`${vm.spec.id} has no pidfile`);
      await good.destroy(vm, signal);
    },
  }),
  'destroy under an aborted signal: it is done all the same': (good) => ({
    destroy: async (vm, signal) => {
      signal.throwIfAborted();
      await good.destroy(vm, signal);
    },
  }),
  'a crashed VM is destroyed: what its boot made is released all the same': (good, { host }) => ({
    destroy: async (vm, signal) => {
      if (host.vmm(vm.uid) !== undefined) await good.destroy(vm, signal);
    },
  }),
  'a kill is refused by the kernel: destroy rejects, record, tap and reservation stay, and a later destroy works':
    destroysRegardless,
  "a tap won't go: destroy rejects, and a later destroy works": (good) => ({
    destroy: (vm, signal) => good.destroy(vm, signal).catch(() => undefined),
  }),
  'the agent restarts: it observes the same VMM running, and its address': (good) => {
    const { boot, knows } = ownOnly(good);
    return {
      boot,
      observe: (vm, signal) => (knows(vm) ? good.observe(vm, signal) : Promise.resolve({ state: 'absent' })),
    };
  },
  'the agent restarts and boots first of all: no second VMM': (good, { host }) => {
    const { boot, knows } = ownOnly(good);
    return {
      boot: async (vm, signal) => {
        if (!knows(vm)) host.signal(vm.uid, 'SIGKILL');
        await boot(vm, signal);
      },
    };
  },
  'the agent restarts and shuts down first of all: the VMM ends': (good) => {
    const { boot, knows } = ownOnly(good);
    return {
      boot,
      shutdown: (vm, step, signal) => (knows(vm) ? good.shutdown(vm, step, signal) : Promise.resolve('gone')),
    };
  },
  'the agent restarts and destroys first of all: nothing is left': (good) => {
    const { boot, knows } = ownOnly(good);
    return { boot, destroy: (vm, signal) => (knows(vm) ? good.destroy(vm, signal) : Promise.resolve()) };
  },
  'the VMM ends while no agent is there: the next one sees it gone, and boots anew': (good, { host }) => ({
    // Believes a pidfile.
    observe: (vm, signal) =>
      host.files.has(vm.paths.pidFile) ? Promise.resolve({ state: 'running', pid: 7 }) : good.observe(vm, signal),
  }),
  'two VMs are booted at once and one is destroyed: the other keeps VMM, network and pump': (good, { host }) => ({
    destroy: async (vm, signal) => {
      await good.destroy(vm, signal);
      // "killall"
      for (const { uid } of host.vmms()) host.signal(uid, 'SIGKILL');
    },
  }),
} satisfies Readonly<Record<ProvisionerCaseName, Breaker>>;
