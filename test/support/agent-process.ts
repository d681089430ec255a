/**
 * A whole agent in a process of its own, over a state directory, a manifest folder and real QEMU guests; started, killed
 * and looked at by a test. Bundled from the sources, with the QEMU backend beside it as an installed plugin.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { AdminClient } from '../../src/client/index.js';
import { initFolder } from '../../src/control/local/index.js';
import { SystemRandom } from '../../src/host/clock.js';
import { bundle } from './bundle.js';
import { endProcessesOf } from './processes.js';
import { removeFolder, sharedFolder } from './temp.js';

const run = promisify(execFile);

export interface AgentProgram {
  readonly program: string;
  readonly pluginRoot: string;
}

/** Makes the program for the running test. */
export async function bundleAgent(): Promise<AgentProgram> {
  const program = await bundle('agent/agent.ts');
  const entry = await bundle('../../plugins/qemu/src/index.ts');
  const pluginRoot = dirname(entry);
  const manifest = readFileSync(fileURLToPath(new URL('../../plugins/qemu/package.json', import.meta.url)), 'utf8');
  const parsed = JSON.parse(manifest) as { readonly eitri: object };
  const block = { ...parsed, eitri: { ...parsed.eitri, entry: './index.js' } };
  writeFileSync(join(pluginRoot, 'package.json'), JSON.stringify(block));
  return { program, pluginRoot };
}

/** A small qcow2 image on which the firmware finds nothing to boot: its VMM runs all the same. */
export async function makeBlankImage(path: string): Promise<void> {
  const raw = `${path}.raw`;
  writeFileSync(raw, Buffer.alloc(2 ** 20, 7));
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, path]);
  rmSync(raw);
}

/** When and where an agent shall die; see test/fixtures/agent/agent.ts. */
export interface Death {
  readonly arm?: 'vms' | 'tombstones';
  readonly dieAt?: string;
  readonly record?: string;
}

/** One host for agents to live and die on. */
export class AgentScene {
  readonly folder = sharedFolder('eit-kill-');
  readonly state = join(this.folder, 'state');
  readonly run = join(this.folder, 'run');
  readonly manifests = join(this.folder, 'vms');
  readonly log = join(this.folder, 'agent.log');
  readonly client = new AdminClient({ runDir: this.run });

  constructor(private readonly agent: AgentProgram) {}

  readonly init = () => initFolder(this.manifests, new SystemRandom());

  /** Starts an agent; resolves with its pid, at once. */
  start(death: Death = {}): { readonly pid: number; readonly ended: Promise<unknown> } {
    const flags = {
      ...{ 'state-dir': this.state, 'run-dir': this.run, local: this.manifests, backend: 'qemu' },
      ...{ 'guest-network': 'user', 'tombstone-grace': '0s', 'bootstrap-url': '' },
    };
    const log = openSync(this.log, 'a');
    const orders = JSON.stringify({ flags, pluginRoot: this.agent.pluginRoot, ...death });
    const child = spawn(process.execPath, [this.agent.program, orders], { stdio: ['ignore', log, log] });
    closeSync(log);
    const { pid } = child;
    if (pid === undefined) throw new Error('the agent could not be started');
    return { pid, ended: once(child, 'exit') };
  }

  /** What the agents complained of, last. */
  complaints(lines = 10): string {
    const all = readFileSync(this.log, 'utf8').split('\n');
    return all
      .filter((line) => /"level":"(warn|error)"|^[^{]/.test(line))
      .slice(-lines)
      .join('\n');
  }

  /** Ends all processes of this host and removes it. */
  async remove(): Promise<void> {
    try {
      await this.client.close();
      await endProcessesOf(this.folder);
    } finally {
      removeFolder(this.folder);
    }
  }
}
