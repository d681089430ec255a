/**
 * The real agent is killed at the calls of its ports while it creates, or destroys, one VM on real QEMU; the next start must
 * end where the first one would have. Which points of death there are is learned from one run that is not killed.
 */
import { existsSync, readdirSync, readFileSync, renameSync, statSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { VmRecord } from '@eitri/core/contracts';
import { AgentScene, bundleAgent, makeBlankImage, type AgentProgram } from './agent-process.js';
import { processesNaming } from './processes.js';
import { freePort, listens } from './tcp.js';
import { tempFolder } from './temp.js';
import { until } from './until.js';

export type Story = 'create' | 'destroy';

const ROUNDS_AT_ONCE = 2;
const REACHED = { timeoutMs: 60_000, everyMs: 50 };
const NAME = 'web-1';

/** What a state directory holds that has one running VM, and nothing else. */
const EXPECTED = [
  /^(lock|control\.json|desired\.json)$/,
  /^images\/sha256-[0-9a-f]{64}(\.[a-z0-9]+)*$/,
  /^volumes\/data\.(raw|json)$/,
  /^vms\/[0-9a-f-]{36}\/(record\.json|vmm\.pid|serial\.log|keys\/[a-z0-9_]+(\.pub)?)$/,
  /^vms\/[0-9a-f-]{36}\/guest\/(disk\.raw|seed\.img|vmm\.log|vars\.fd)$/,
];

/** Which of all points to try: each one whose number, divided by `of`, leaves `rest`. */
export interface Share {
  readonly of: number;
  readonly rest: number;
}

interface SweepOptions extends Share {
  readonly agent: AgentProgram;
  /** A qcow2 image. */
  readonly image: string;
}

export interface SweepResult {
  readonly all: number;
  readonly tried: number;
  /** In how many rounds the agent passed its point and died there. */
  readonly killed: number;
}

/** Tries the points; fails, with each one that ended wrong, after all were tried. Only in a running test. */
export async function sweepScene(story: Story, share: Share): Promise<SweepResult> {
  const image = join(tempFolder(), 'blank.qcow2');
  await makeBlankImage(image);
  return await sweep(story, { ...share, image, agent: await bundleAgent() });
}

async function sweep(story: Story, options: SweepOptions): Promise<SweepResult> {
  const points = await recordPoints(story, options);
  const chosen = points.filter((_, at) => at % options.of === options.rest);
  const failures: string[] = [];
  let killed = 0;
  const queue = [...chosen];
  const work = async (): Promise<void> => {
    for (let point = queue.shift(); point !== undefined; point = queue.shift()) {
      const round = new Round(story, options);
      try {
        if (await round.run(point)) killed++;
      } catch (error) {
        failures.push(`killed ${point}: ${String(error)}\n${round.scene.complaints()}`);
      } finally {
        await round.scene.remove();
      }
    }
  };
  await Promise.all(Array.from({ length: ROUNDS_AT_ONCE }, work));
  expect(failures.join('\n\n')).toBe('');
  return { all: points.length, tried: chosen.length, killed };
}

async function recordPoints(story: Story, options: SweepOptions): Promise<readonly string[]> {
  const round = new Round(story, options);
  try {
    return await round.record();
  } catch (error) {
    throw new Error(`not killed at all: ${String(error)}\n${round.scene.complaints()}`, { cause: error });
  } finally {
    await round.scene.remove();
  }
}

const signal = (): AbortSignal => AbortSignal.timeout(10_000);

class Round {
  readonly scene: AgentScene;
  private port = 0;

  constructor(
    private readonly story: Story,
    private readonly options: SweepOptions,
  ) {
    this.scene = new AgentScene(options.agent);
  }

  async record(): Promise<readonly string[]> {
    const record = join(this.scene.folder, 'points');
    writeFileSync(record, '');
    await this.declare();
    this.scene.start({ arm: this.arm(), record });
    await this.begin();
    await this.reached();
    return [...new Set(readFileSync(record, 'utf8').split('\n').slice(0, -1))];
  }

  /** Whether the agent was killed: a look that came often in the recorded run may come less often in this one. */
  async run(dieAt: string): Promise<boolean> {
    await this.declare();
    const first = this.scene.start({ arm: this.arm(), dieAt });
    const end = new AbortController();
    const died = first.ended.then(() => true);
    const lived = this.begin()
      .then(() => this.reached(end.signal))
      .then(() => false);
    lived.catch(() => undefined);
    const killed = await Promise.race([died, lived]);
    end.abort();
    await lived.catch(() => undefined);
    if (!killed) {
      process.kill(first.pid, 'SIGKILL');
      await died;
    }
    const before = this.disk();
    this.scene.start();
    await this.reached();
    if (this.story === 'create') await this.checkCreated(before);
    else await this.checkDestroyed();
    return killed;
  }

  private arm(): 'vms' | 'tombstones' {
    return this.story === 'create' ? 'vms' : 'tombstones';
  }

  private async declare(): Promise<void> {
    await this.scene.init();
    this.port = await freePort();
    writeFileSync(
      join(this.scene.manifests, `${NAME}.yaml`),
      `apiVersion: eitri/v1
kind: VirtualMachine
metadata: {name: ${NAME}}
spec:
  memory: 64MiB
  disk: 1GiB
  image: {url: "file://${this.options.image}"}
  volumes: [{name: data, size: 1GiB}]
  exposures: [{hostAddress: 127.0.0.1, hostPort: ${String(this.port)}, guestPort: 22, protocol: tcp}]
  shutdown: {graceSeconds: 1}
`,
    );
  }

  /** Brings the VM to where the deaths begin. */
  private async begin(): Promise<void> {
    if (this.story === 'create') return;
    await until(() => this.phase('Running'), REACHED);
    // By hand: a tombstone that an act of the agent's own made would die with it in the middle of the answer.
    mkdirSync(join(this.scene.manifests, '.deleted'));
    renameSync(join(this.scene.manifests, `${NAME}.yaml`), join(this.scene.manifests, '.deleted', `${NAME}.yaml`));
  }

  private async reached(end?: AbortSignal): Promise<void> {
    await until(async () => {
      if (end?.aborted === true) return true;
      if (this.story === 'create') return await this.phase('Running');
      return (await this.scene.client.vms(signal())).length === 0;
    }, REACHED);
  }

  private async phase(wanted: string): Promise<boolean> {
    const vms = await this.scene.client.vms(signal());
    if (vms.length !== 1 || vms[0]?.phase !== wanted) throw new Error(JSON.stringify(vms));
    return true;
  }

  private lives(): readonly string[] {
    const vms = join(this.scene.state, 'vms');
    return existsSync(vms) ? readdirSync(vms) : [];
  }

  /** The disk as the dead agent left it, and whether a guest may have written on it. */
  private disk(): { readonly inode: number; readonly bootAttempted: boolean } | undefined {
    const [uid] = this.lives();
    if (uid === undefined) return undefined;
    const disk = join(this.scene.state, 'vms', uid, 'guest', 'disk.raw');
    const record = join(this.scene.state, 'vms', uid, 'record.json');
    if (!existsSync(disk) || !existsSync(record)) return undefined;
    const { bootAttempted } = JSON.parse(readFileSync(record, 'utf8')) as VmRecord;
    return { inode: statSync(disk).ino, bootAttempted };
  }

  private files(): readonly string[] {
    return readdirSync(this.scene.state, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.scene.state.length + 1))
      .sort();
  }

  private async checkCreated(before: ReturnType<Round['disk']>): Promise<void> {
    // It must stay so: an agent that starts a second VMM does it at one of its next looks.
    const [vm] = await this.scene.client.vms(signal());
    const { runFolder } = (await this.scene.client.vm(NAME, signal())).paths ?? { runFolder: 'unknown' };
    const vmms = processesNaming(`${runFolder}/`).filter(({ argv }) => (argv[0] ?? '').includes('qemu-system'));
    expect(vmms.map(({ pid }) => pid)).toEqual([vm?.pid]);
    const others = processesNaming(this.scene.folder).filter(({ pid }) => pid !== vm?.pid);
    expect(others.map(({ argv }) => argv.slice(0, 2))).toEqual([[process.execPath, this.options.agent.program]]);
    expect(this.lives()).toEqual([vm?.uid]);
    if (before?.bootAttempted === true) expect(this.disk()?.inode).toBe(before.inode);
    expect(this.files().filter((file) => !EXPECTED.some((pattern) => pattern.test(file)))).toEqual([]);
    await until(() => listens(this.port), REACHED);
  }

  private async checkDestroyed(): Promise<void> {
    expect(await listens(this.port)).toBe(false);
    expect(this.lives()).toEqual([]);
    const others = processesNaming(this.scene.folder).map(({ argv }) => argv.slice(0, 2));
    expect(others).toEqual([[process.execPath, this.options.agent.program]]);
    // The new agent may still be placing its second socket, for which it makes a folder for a moment.
    const run = (): string => readdirSync(this.scene.run).sort().join(' ');
    await until(() => run() === 'act.sock admin.sock lock', {
      ...REACHED,
      what: `only the agent's sockets, of ${run()}`,
    });
    expect(this.files().filter((file) => !EXPECTED.some((pattern) => pattern.test(file)))).toEqual([]);
    // The volume outlives its VM, and is nobody's.
    expect(this.files()).toContain('volumes/data.raw');
  }
}
