/**
 * Machines from manifests to VMMs, with records, disks, seeds and taps: ours, the plain script, and libvirt. The image is
 * in our cache, libvirtd and our agent run, and what both ask of their host once was asked in the turn that does not count.
 *
 * A machine is up when its VMM has answered and its record says that it was started (ours), when it has answered (script),
 * or when `virsh start` has returned.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { VmUid } from '@eitri/core/contracts';
import { AgentHost } from './agent-host.js';
import type { Benchmark, Contender } from './harness.js';
import { Libvirt, LIBVIRT_BRIDGE, type Domain } from './libvirt.js';
import { acceleratorUsed, atWidth, MACHINES, makeScene, outcomeOf, type Scene } from './machines.js';
import { libvirtLacks } from './needs.js';
import { makeDisk, makeSeed, plainScript } from './plain-script.js';

const OUR_BRIDGE = 'eitri0';

export const converge: Benchmark = {
  name: 'converge',
  about: `${MACHINES} machines from manifests to VMMs, beside a plain script and virsh`,
  lacks: libvirtLacks,
  minRounds: 2,
  prepare: async (bench) => {
    const scene = await makeScene(bench);
    const agent = await AgentHost.make(scene, bench, ['--guest-isolation']);
    await agent.started();
    const libvirt = await Libvirt.make(scene, bench);
    await libvirt.started();
    // Ours chooses, by a trial; its first turn comes before the others'.
    let accelerator: 'kvm' | 'tcg' | undefined;
    const chosen = (): 'kvm' | 'tcg' => {
      if (accelerator === undefined) throw new Error('no turn of ours was made yet');
      return accelerator;
    };
    const ours = ourTurns(scene, agent, () => {
      accelerator ??= acceleratorUsed(agent.folder) === 'kvm' ? 'kvm' : 'tcg';
    });
    const script = await plainScript(scene, bench, chosen);
    return [
      {
        unit: 's',
        ours,
        peers: [script, virshTurns(scene, libvirt, chosen)],
        goals: [
          { of: 'sum', id: `converge-${scene.names.length}-script`, times: { script: 1.2 } },
          { of: 'sum', id: `converge-${scene.names.length}-virsh`, times: { virsh: 0.5 } },
        ],
      },
    ];
  },
};

function ourTurns(scene: Scene, agent: AgentHost, up: () => void): Contender {
  let turn = 0;
  return {
    name: 'ours',
    run: async () => {
      // Other names each time: other lives, other disks, other taps.
      const names = scene.names.map((name) => `t${String(turn)}-${name}`);
      turn++;
      const begun = performance.now();
      agent.declare(names, []);
      await agent.untilUp(names.length);
      const value = (performance.now() - begun) / 1000;
      up();
      const outcome = await outcomeOf(agent.folder, scene.net, OUR_BRIDGE);
      await agent.clear();
      return { value, outcome };
    },
  };
}

/** libvirt makes neither disks nor seeds of images: the plain script's are made for it, within its time. */
export function virshTurns(scene: Scene, libvirt: Libvirt, accelerator: () => 'kvm' | 'tcg'): Contender {
  let turn = 0;
  return {
    name: 'virsh',
    run: async (signal) => {
      const home = `t${String(turn++)}`;
      const begun = performance.now();
      const domains = domainsIn(join(libvirt.folder, home), scene.names);
      await atWidth(
        domains,
        signal,
        (domain) => prepared(scene, domain),
        (domain) => libvirt.defineAndStart(domain, accelerator()),
      );
      const value = (performance.now() - begun) / 1000;
      const outcome = await outcomeOf(libvirt.folder, scene.net, LIBVIRT_BRIDGE);
      await libvirt.clear(scene.names);
      libvirt.removeFolder(home);
      return { value, outcome };
    },
  };
}

export function domainsIn(home: string, names: readonly string[]): readonly Domain[] {
  return names.map((name) => {
    const folder = join(home, name);
    mkdirSync(join(folder, 'keys'), { recursive: true });
    return { name, uid: randomUUID() as VmUid, folder };
  });
}

export async function prepared(scene: Scene, { folder, uid, name }: Domain): Promise<void> {
  await makeDisk(scene.base, join(folder, 'disk.raw'));
  await makeSeed(join(folder, 'seed.img'), join(folder, 'keys'), uid, name);
}
