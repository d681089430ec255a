/**
 * A tick over a thousand VMs at which nothing has changed: each is looked at, and nothing is done. Beside it, what no such
 * look can do without: asking the kernel a thousand times whether a process is there.
 */
import type { Observation, VmInstance } from '@eitri/core/contracts';
import type { Benchmark } from './harness.js';
import { World } from '../test/support/world.js';

const VMS = 1_000;

export const tick: Benchmark = {
  name: 'tick',
  about: `a look at ${VMS} unchanged VMs, beside ${VMS} times kill(pid, 0)`,
  prepare: async ({ defer }) => {
    const world = new World({ capabilities: { guestNetwork: 'user' }, policy: { maxConcurrentCreates: 0 } });
    defer(() => world.kill());
    for (let at = 0; at < VMS; at++) world.want(`vm-${at}`);
    const { engine, provisioner } = await world.boot();
    await world.until(() => world.host.vmms().length === VMS);
    await world.clock.advance(10_000);
    let seen = 0;
    // A backend that tells by the pid alone, and keeps no log of its calls.
    const observation: Observation = { state: 'running', pid: process.pid };
    Object.assign(provisioner, {
      observe: (_vm: VmInstance): Promise<Observation> => {
        process.kill(process.pid, 0);
        seen++;
        return Promise.resolve(observation);
      },
      address: () => Promise.resolve(undefined),
    });
    await world.clock.advance(10_000);
    const ours = async (): Promise<{ value: number; outcome: string }> => {
      seen = 0;
      const start = performance.now();
      engine.tick();
      while (seen < VMS) await Promise.resolve();
      const value = performance.now() - start;
      await world.clock.advance(0);
      return { value, outcome: `${seen} looks` };
    };
    const peer = (): Promise<{ value: number; outcome: string }> => {
      let looks = 0;
      const start = performance.now();
      for (; looks < VMS; looks++) process.kill(process.pid, 0);
      return Promise.resolve({ value: performance.now() - start, outcome: `${looks} looks` });
    };
    return [
      {
        unit: 'ms',
        ours: { name: 'engine', run: ours },
        peers: [{ name: 'kill loop', run: peer }],
        goals: [{ of: 'sum', id: `tick-${VMS}`, times: { 'kill loop': 3 } }],
      },
    ];
  },
};
