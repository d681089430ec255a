/**
 * An agent that starts on a host whose machines run: from the start of its process until each machine has its VMM again.
 * Beside it the sum of what both need that do less: a Node process that does nothing, and a libvirtd from its start until
 * it lists as many machines of its own.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AgentHost } from './agent-host.js';
import { domainsIn, prepared } from './converge.js';
import type { Benchmark } from './harness.js';
import { Libvirt } from './libvirt.js';
import { acceleratorUsed, atWidth, MACHINES, makeScene } from './machines.js';
import { libvirtLacks } from './needs.js';

const run = promisify(execFile);

export const recover: Benchmark = {
  name: 'recover',
  about: `a killed agent's start until ${MACHINES} machines are adopted, beside node and libvirtd`,
  lacks: libvirtLacks,
  prepare: async (bench) => {
    const scene = await makeScene(bench);
    const count = scene.names.length;
    const agent = await AgentHost.make(scene, bench, []);
    await agent.started();
    agent.declare(scene.names, []);
    await agent.untilUp(count);
    const accelerator = acceleratorUsed(agent.folder) === 'kvm' ? 'kvm' : 'tcg';
    const libvirt = await Libvirt.make(scene, bench);
    await libvirt.started();
    await atWidth(domainsIn(join(libvirt.folder, 'guests'), scene.names), bench.signal, async (domain) => {
      await prepared(scene, domain);
      await libvirt.defineAndStart(domain, accelerator);
    });
    const pids = async (): Promise<string> =>
      ((await agent.vms()) ?? []).map(({ id, pid }) => `${id} ${pid?.toString() ?? ''}`).join(', ');
    const before = await pids();
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const begun = performance.now();
      await work();
      return performance.now() - begun;
    };
    const ours = async (): Promise<{ value: number; outcome: string }> => {
      await agent.end('SIGKILL');
      const value = await timed(async () => {
        agent.start();
        await agent.untilUp(count);
      });
      if ((await pids()) !== before) throw new Error('the agent found other VMMs than it had started');
      return { value, outcome: `${count} machines` };
    };
    const daemon = async (): Promise<{ value: number; outcome: string }> => {
      await libvirt.end();
      const value = await timed(async () => {
        libvirt.start();
        await libvirt.untilRunning(count);
      });
      return { value, outcome: `${count} machines` };
    };
    const node = async (): Promise<{ value: number; outcome: undefined }> => ({
      value: await timed(() => run(process.execPath, ['-e', '0'])),
      outcome: undefined,
    });
    return [
      {
        unit: 'ms',
        ours: { name: 'ours', run: ours },
        peers: [
          { name: 'node', run: node },
          { name: 'libvirtd', run: daemon },
        ],
        goals: [{ of: 'sum', id: `recover-${count}`, times: { node: 1.5, libvirtd: 1 } }],
      },
    ];
  },
};
