/**
 * What an agent costs that has nothing to do: a thousand machines that are declared stopped and were booted once, each with
 * its record, over real files, with the guests' network up. The programs that it starts to look after that network count.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { FileDesiredStore } from '../src/desired/index.js';
import { diskFiles } from '../src/host/atomic-file.js';
import { SystemRandom } from '../src/host/clock.js';
import { FileStateStore, StatePaths } from '../src/state/index.js';
import { newRecord } from '../src/core/reconcile/record.js';
import { MemoryLogger } from '../test/support/ports.js';
import { AgentHost } from './agent-host.js';
import type { Bench, Benchmark, Contender } from './harness.js';
import { atWidth, makeScene } from './machines.js';
import { agentLacks } from './needs.js';

const RECORDS = 1_000;
/** Many ticks, and some looks at the network. */
const WINDOW_MS = 45_000;
/** Of the kernel's processor times (`getconf CLK_TCK`), on every Linux of today. */
const TICKS_A_SECOND = 100;
const MOST_PERCENT = 1;
const MOST_MB = 120;

export const idle: Benchmark = {
  name: 'idle',
  about: `an agent over ${RECORDS} stopped machines: processor (its tools included) and memory`,
  lacks: agentLacks,
  minRounds: 2,
  prepare: async (bench) => {
    const agent = await atRest(bench);
    return [
      {
        unit: '% of a core',
        ours: processorOf(agent),
        peers: [],
        goals: [{ of: 'figure', id: `idle-${RECORDS}-processor`, atMost: MOST_PERCENT }],
      },
      {
        unit: 'MB',
        ours: memoryOf(agent),
        peers: [],
        goals: [{ of: 'figure', id: `idle-${RECORDS}-memory`, atMost: MOST_MB }],
      },
    ];
  },
};

async function atRest(bench: Bench): Promise<AgentHost> {
  const scene = await makeScene(bench);
  const agent = await AgentHost.make(scene, bench, []);
  const names = Array.from({ length: RECORDS }, (_, at) => `s${at.toString().padStart(4, '0')}`);
  agent.declare(names, ['power: stopped']);
  // A machine that is declared stopped has no record before it was started once: this agent only accepts the manifests.
  await agent.started();
  await agent.untilHas(RECORDS, () => true);
  await agent.end('SIGTERM');
  await writeRecords(agent, bench.signal);
  await agent.started();
  await agent.untilHas(RECORDS, ({ phase, boots }) => phase === 'Stopped' && boots === 1);
  return agent;
}

async function writeRecords(agent: AgentHost, signal: AbortSignal): Promise<void> {
  const paths = new StatePaths({ stateDir: agent.state, runDir: agent.run });
  const log = new MemoryLogger();
  const store = new FileStateStore(paths, log, diskFiles);
  const desired = new FileDesiredStore(new SystemRandom(), log, diskFiles, { path: paths.desired, adopt: false });
  await desired.load();
  await atWidth(desired.current()?.lives ?? [], signal, async ({ uid, id, spec }) => {
    const record = newRecord({ uid, id, spec, backend: 'qemu', paths: paths.pathsOf(uid), now: Date.now() });
    await store.writeRecord({
      ...record,
      prepared: { disk: true, volumes: [], seed: true },
      bootAttempted: true,
      boots: 1,
    });
  });
}

const processorOf = (agent: AgentHost): Contender => ({
  name: 'agent',
  run: async (signal) => {
    const [before, begun] = [processorSeconds(agent.pid), performance.now()];
    await wait(WINDOW_MS, undefined, { signal });
    const seconds = (performance.now() - begun) / 1000;
    return { value: ((processorSeconds(agent.pid) - before) / seconds) * 100, outcome: 'still there' };
  },
});

const memoryOf = (agent: AgentHost): Contender => ({
  name: 'agent',
  run: () => {
    const status = readFileSync(join('/proc', String(agent.pid), 'status'), 'utf8');
    const [, kib = 'NaN'] = /^VmRSS:\s+(\d+) kB/m.exec(status) ?? [];
    return Promise.resolve({ value: (Number(kib) * 1024) / 1e6, outcome: 'still there' });
  },
});

/** Its own, and that of the children which it has waited for. */
function processorSeconds(pid: number): number {
  const stat = readFileSync(join('/proc', String(pid), 'stat'), 'utf8');
  // Behind the name, which may hold anything, the fields 3 to 17: state … utime stime cutime cstime.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_A_SECOND;
}
