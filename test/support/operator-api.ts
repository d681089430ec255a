/**
 * The operator API as it is at work, over a host in memory: the real engine, the real consoles, the real sockets.
 */
import { mkdirSync } from 'node:fs';
import { FakeConsole, sampleCapabilities, sampleSpec, sampleUid } from '@eitri/conformance';
import type { DesiredLife, EditOutcome, PowerState, VmId, VmPaths, VmUid } from '@eitri/core/contracts';
import type { EnginePolicy } from '@eitri/core/reconcile';
import { onTestFinished } from 'vitest';
import { AdminServer, type AdminPorts } from '../../src/admin/index.js';
import { AdminClient } from '../../src/client/index.js';
import { ConsoleManager } from '../../src/console/index.js';
import { SystemClock } from '../../src/host/clock.js';
import { StatePaths } from '../../src/state/index.js';
import { silent } from './quiet.js';
import { tempFolder } from './temp.js';
import { World, type Agent } from './world.js';

export interface OperatorApiOptions {
  readonly runDir?: string;
  readonly networked?: boolean;
  readonly policy?: Partial<EnginePolicy>;
}

export class OperatorApi {
  readonly clock = new SystemClock();
  readonly lines = new FakeConsole();
  readonly stateDir = tempFolder();
  private readonly paths = new StatePaths({ stateDir: this.stateDir, runDir: this.stateDir });
  readonly consoles = new ConsoleManager(this.lines, this.clock, silent, {
    logPathOf: (uid) => this.pathsOf(uid).serialLog,
  });
  readonly signal = new AbortController().signal;
  server: AdminServer;
  /** Names that a mass vanishing holds. */
  readonly held: VmId[] = [];
  /** What a repair of the guests' network finds; an error is one that it can't put right. */
  readonly drifts: (string | Error)[] = [];
  /** What was handed in. */
  readonly written: { readonly mode: string; readonly text: string }[] = [];

  private constructor(
    readonly world: World,
    public agent: Agent,
    readonly runDir: string,
    /** Whether a network plugin gives guests their network. */
    private readonly networked: boolean,
  ) {
    this.server = this.makeServer();
  }

  static async open(options: OperatorApiOptions = {}): Promise<OperatorApi> {
    const world = new World(options.policy === undefined ? {} : { policy: options.policy });
    const api = new OperatorApi(world, await world.boot(), options.runDir ?? tempFolder(), options.networked ?? true);
    onTestFinished(async () => {
      await api.server.close(1_000);
      await api.consoles.stopAll(1_000);
      await world.kill();
    });
    await api.server.start();
    return api;
  }

  /** A client of this agent, gone with the test. */
  client(runDir = this.runDir): AdminClient {
    const client = new AdminClient({ runDir });
    onTestFinished(() => client.close());
    return client;
  }

  /** The next agent, after the one before was killed, with its API. */
  async restart(): Promise<void> {
    await this.server.close(1_000);
    this.agent = await this.world.boot();
    this.server = this.makeServer();
    await this.server.start();
  }

  makeServer(): AdminServer {
    return new AdminServer(this.ports(), this.clock, silent, { runDir: this.runDir, os: 'linux' });
  }

  /** Declares a VM and lets it come up, with a console that is connected. */
  async running(id: string): Promise<VmUid> {
    const uid = this.world.want(id);
    mkdirSync(this.pathsOf(uid).guestFolder, { recursive: true });
    await this.world.untilPhase(id, 'Running');
    this.lines.line(uid).powerOn();
    await this.consoles.ensure(uid);
    return uid;
  }

  pathsOf(uid: VmUid): VmPaths {
    // Real folders for what is read from the disk; the sockets stand where the world in memory has them.
    const { runFolder } = this.world.state.pathsOf(uid);
    return { ...this.paths.pathsOf(uid), runFolder };
  }

  private ports(): AdminPorts {
    const { world, agent } = this;
    return {
      agent: {
        facts: () => ({
          version: '1.2.3',
          pid: process.pid,
          startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
          host: {
            os: 'linux',
            arch: 'x64',
            bootId: 'boot-1',
            hostname: 'host-1',
            root: true,
            cpus: 2,
            memoryMib: 4096,
          },
          stateDir: this.stateDir,
          runDir: this.runDir,
          capabilities: sampleCapabilities({ notes: [{ level: 'info', text: 'guests live in memory' }] }),
          controlPlane: 'local folder /etc/eitri',
          caps: { vcpus: 8, memoryMib: 0, diskGib: 0 },
        }),
        report: () => agent.engine.report(),
        record: (uid) => agent.engine.record(uid),
        pathsOf: (uid) => this.pathsOf(uid),
        desired: () => world.desired.current(),
        issues: () => [{ source: 'bad.yaml', line: 3, message: 'spec.cpus: want 1 to 256' }],
        inContact: () => world.desired.inContact(),
        plan: (lives) => agent.engine.plan(lives),
        trouble: (uid) => agent.engine.trouble(uid),
        held: () => ({ vcpus: 1, memoryMib: 256, diskGib: 2 }),
        eventsSince: (seq) => agent.events.since(seq),
        onEvent: (listener) => agent.events.listen(listener),
      },
      imagination: {
        imagine: (files) => {
          const why = files.flatMap(({ name, text }) => (text.startsWith('bad') ? [`${name}:1: bad: mend it`] : []));
          if (why.length > 0) return Promise.resolve({ kind: 'refused', why });
          const known = world.desired.current()?.lives ?? [];
          const lives = files.map(({ text }, n): DesiredLife => {
            const spec = sampleSpec(text.trim());
            const uid = known.find(({ id }) => id === spec.id)?.uid ?? sampleUid(900 + n);
            return { kind: 'present', uid, id: spec.id, spec };
          });
          const others = known.filter(({ uid }) => !lives.some((life) => life.uid === uid));
          return Promise.resolve({ kind: 'lives', lives: [...others, ...lives] });
        },
      },
      editor: {
        setPower: (id, power) => Promise.resolve(this.setPower(id, power)),
        remove: (id) => Promise.resolve(this.remove(id)),
        undelete: (id) => Promise.resolve(this.undelete(id)),
        write: (text, mode) => Promise.resolve(this.write(text, mode)),
      },
      holds: { releaseHold: () => Promise.resolve(this.held.splice(0)) },
      consoles: this.consoles,
      network: this.networked ? { repair: () => this.repair() } : undefined,
    };
  }

  private repair(): Promise<readonly string[]> {
    const found = this.drifts.splice(0);
    const failed = found.find((one) => one instanceof Error);
    return failed === undefined ? Promise.resolve(found.map(String)) : Promise.reject(failed);
  }

  private lifeOf(id: VmId) {
    return this.world.desired.current()?.lives.find((life) => life.id === id);
  }

  private setPower(id: VmId, power: PowerState): EditOutcome {
    const life = this.lifeOf(id);
    if (life === undefined) return missing(id);
    const changed = life.spec.power !== power;
    if (changed) this.world.desired.want({ ...life.spec, power }, life.uid);
    return { kind: 'done', changed, edits: [{ id, file: `${id}.yaml` }] };
  }

  private remove(id: VmId): EditOutcome {
    const life = this.lifeOf(id);
    if (life === undefined) return missing(id);
    this.world.desired.tombstone(life.uid);
    return { kind: 'done', changed: life.kind === 'present', edits: [{ id, file: `.deleted/${id}.yaml` }] };
  }

  private write(text: string, mode: 'create' | 'apply'): EditOutcome {
    this.written.push({ mode, text });
    const why = text.startsWith('bad') ? ['input:1: bad: mend it'] : undefined;
    if (why !== undefined) return { kind: 'refused', reason: 'invalid', why };
    return { kind: 'done', changed: true, edits: [{ id: 'web-1' as VmId, file: 'web-1.yaml' }] };
  }

  private undelete(id: VmId): EditOutcome {
    const life = this.lifeOf(id);
    if (life === undefined) return missing(id);
    this.world.desired.restore(life.uid);
    return { kind: 'done', changed: life.kind !== 'present', edits: [{ id, file: `${id}.yaml` }] };
  }
}

const missing = (id: VmId): EditOutcome => ({
  kind: 'refused',
  reason: 'notFound',
  why: [`no document of the folder declares ${id}`],
});
