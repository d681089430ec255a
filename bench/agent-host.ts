/**
 * Ours: the built agent in the scene's namespace, over a state directory and a manifest folder of its own. Driven by
 * manifests, and asked over its socket, as its commands do.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VmSummaryView } from '@eitri/protocol';
import { AdminClient } from '../src/client/index.js';
import { initFolder } from '../src/control/local/index.js';
import { SystemRandom } from '../src/host/clock.js';
import { isAlive } from '../test/support/processes.js';
import type { Bench } from './harness.js';
import { DISK_GIB, endVmmsOf, folderIn, MEMORY_MIB, reached, textOf, type Scene } from './machines.js';
import { BIN } from './needs.js';

const ANSWER_MS = 60_000;

export class AgentHost {
  readonly folder: string;
  readonly state: string;
  readonly manifests: string;
  readonly run: string;
  private readonly log: string;
  private readonly client: AdminClient;
  private agent: { readonly pid: number; readonly ended: Promise<unknown> } | undefined;

  private constructor(
    private readonly scene: Scene,
    private readonly flags: readonly string[],
    private readonly signal: AbortSignal,
  ) {
    this.folder = folderIn(scene, 'ours');
    this.state = join(this.folder, 'state');
    this.run = join(this.folder, 'run');
    this.manifests = join(this.folder, 'vms');
    this.log = join(this.folder, 'agent.log');
    this.client = new AdminClient({ runDir: this.run });
  }

  /** `flags`: beside those that every agent of a benchmark has. */
  static async make(scene: Scene, { defer, signal }: Bench, flags: readonly string[]): Promise<AgentHost> {
    const host = new AgentHost(scene, flags, signal);
    defer(() => host.client.close());
    defer(() => host.end('SIGKILL'));
    await initFolder(host.manifests, new SystemRandom());
    return host;
  }

  get pid(): number {
    if (this.agent === undefined) throw new Error('no agent runs');
    return this.agent.pid;
  }

  /** Starts an agent; it need not answer yet. */
  start(): void {
    const places = ['--state-dir', this.state, '--run-dir', this.run, '--local', this.manifests];
    const own = ['--backend', 'qemu', '--qemu-bin', this.scene.qemu, '--bootstrap-url', '', '--tombstone-grace', '0s'];
    const log = openSync(this.log, 'a');
    const words = [
      'netns',
      'exec',
      this.scene.net.name,
      process.execPath,
      BIN,
      'run',
      ...places,
      ...own,
      ...this.flags,
    ];
    const child = spawn('ip', words, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    if (child.pid === undefined) throw new Error('the agent could not be started');
    this.agent = { pid: child.pid, ended: once(child, 'exit') };
  }

  async started(): Promise<void> {
    this.start();
    await this.until('the agent answers', async () => (await this.vms()) !== undefined);
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.agent === undefined) return;
    if (isAlive(this.agent.pid)) process.kill(this.agent.pid, signal);
    await this.agent.ended;
    this.agent = undefined;
  }

  /** A manifest each, by names that were not used before. */
  declare(names: readonly string[], spec: readonly string[]): void {
    for (const name of names) {
      const image = `  image: {url: "file://${this.scene.image}"}\n`;
      const machine = `  cpus: 1\n  memory: ${MEMORY_MIB}MiB\n  disk: ${DISK_GIB}GiB\n  restart: never\n${image}`;
      const more = spec.map((line) => `  ${line}\n`).join('');
      const head = `apiVersion: eitri/v1\nkind: VirtualMachine\nmetadata:\n  name: ${name}\nspec:\n`;
      writeFileSync(join(this.manifests, `${name}.yaml`), `${head}${machine}${more}`);
    }
  }

  /**
   * Each has its VMM, recorded. The guests are stopped before their first instruction, so that none is ever `Running`: QEMU
   * calls it `prelaunch`, which for the agent is a VMM that is there and a guest that starts.
   */
  async untilUp(count: number): Promise<void> {
    await this.until(`${count} machines have their VMMs`, async () => {
      const vms = (await this.vms()) ?? [];
      const failed = vms.find(({ phase }) => phase === 'Failed');
      if (failed !== undefined) throw new Error(`${failed.id} failed: ${failed.message ?? ''}`);
      return vms.filter(({ pid, startedAt }) => pid !== undefined && startedAt !== undefined).length === count;
    });
  }

  /** So many are known, and this holds for each. */
  async untilHas(count: number, holds: (vm: VmSummaryView) => boolean): Promise<void> {
    await this.until(`${count} machines are known`, async () => {
      const vms = (await this.vms()) ?? [];
      return vms.length === count && vms.every(holds);
    });
  }

  /** All are deleted by their manifests, and nothing of them is left. */
  async clear(): Promise<void> {
    const deleted = join(this.manifests, '.deleted');
    mkdirSync(deleted, { recursive: true });
    for (const file of readdirSync(this.manifests).filter((name) => name.endsWith('.yaml'))) {
      renameSync(join(this.manifests, file), join(deleted, file));
    }
    endVmmsOf(this.folder);
    await this.until('all machines are gone', async () => (await this.vms())?.length === 0);
  }

  /** Undefined: no agent answers yet. */
  async vms(): Promise<readonly VmSummaryView[] | undefined> {
    try {
      return await this.client.vms(AbortSignal.timeout(ANSWER_MS));
    } catch {
      return undefined;
    }
  }

  private until(what: string, holds: () => Promise<boolean>): Promise<void> {
    return reached(what, this.signal, () => {
      if (!isAlive(this.pid)) throw new Error(`the agent ended: ${this.complaints()}`);
      return holds();
    });
  }

  private complaints(): string {
    const lines = textOf(this.log).split('\n');
    return lines
      .filter((line) => /"level":"(warn|error)"|^[^{]/.test(line))
      .slice(-5)
      .join('\n');
  }
}
