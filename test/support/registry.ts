/**
 * A registry of npm on loopback, verdaccio in a process of its own: it holds the packages of this workspace, as they are
 * packed, and asks the registry that npm is set up with for everything else. An `@eitri` package that is not published
 * here does not exist.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AGENT_ROOT } from './cli.js';
import { freePort } from './tcp.js';
import { until } from './until.js';

const run = promisify(execFile);
/** In the order in which one needs another. */
const PUBLISHED = ['src/core', 'src/protocol', 'src/conformance', 'plugins/qemu', 'plugins/netenv-linux', '.'];

export class TestRegistry {
  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private readonly server: ChildProcess,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  /** Its files stand in the folder, which is the caller's to remove. */
  static async start(folder: string): Promise<TestRegistry> {
    const port = await freePort();
    const { stdout: upstream } = await run('npm', ['config', 'get', 'registry'], { cwd: AGENT_ROOT });
    const config = {
      storage: join(folder, 'storage'),
      auth: { htpasswd: { file: join(folder, 'htpasswd'), algorithm: 'bcrypt', rounds: 4 } },
      uplinks: { upstream: { url: upstream.trim(), timeout: '60s', maxage: '10m', max_fails: 20 } },
      packages: {
        '@eitri/*': { access: '$all', publish: '$authenticated' },
        '**': { access: '$all', proxy: 'upstream' },
      },
      max_body_size: '100mb',
      web: { enable: false },
      log: { type: 'stdout', format: 'json', level: 'warn' },
    };
    const path = join(folder, 'verdaccio.yaml');
    // JSON is YAML, and under its own name it would be deprecated.
    writeFileSync(path, JSON.stringify(config));
    const program = createRequire(import.meta.url).resolve('verdaccio/bin/verdaccio');
    const server = spawn(process.execPath, [program, '--config', path, '--listen', `127.0.0.1:${port}`], {
      cwd: folder,
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: 'ignore',
    });
    const registry = new TestRegistry(folder, port, server);
    try {
      await until(async () => (await fetch(`${registry.url}-/ping`)).ok, { timeoutMs: 60_000, everyMs: 100 });
    } catch (error) {
      await registry.stop();
      throw error;
    }
    return registry;
  }

  /** Packs the workspace as it is built, and publishes all of it. Answers the path of the agent as it was packed. */
  async publishWorkspace(): Promise<string> {
    const packed = join(this.folder, 'packed');
    mkdirSync(packed);
    // Without scripts: what is built is under test, and others may be testing it at the same time.
    const args = ['pack', '--ignore-scripts', '--pack-destination', packed, ...PUBLISHED.map((path) => `./${path}`)];
    await run('npm', args, { cwd: AGENT_ROOT, maxBuffer: 2 ** 26 });
    const npmrc = join(this.folder, 'npmrc');
    writeFileSync(npmrc, `//127.0.0.1:${this.port}/:_authToken=${await this.token()}\n`);
    const tarballs = readdirSync(packed);
    for (const tarball of tarballs) {
      const publish = ['publish', join(packed, tarball), '--access', 'public', '--registry', this.url];
      await run('npm', publish, { cwd: this.folder, env: { ...process.env, npm_config_userconfig: npmrc } });
    }
    return join(packed, tarballs.find((tarball) => /^eitri-agent-\d/.test(tarball)) ?? '');
  }

  async stop(): Promise<void> {
    if (this.server.exitCode !== null || this.server.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => this.server.once('exit', () => resolve()));
    this.server.kill('SIGKILL');
    await ended;
  }

  /** verdaccio lets nobody publish who has no name. */
  private async token(): Promise<string> {
    const response = await fetch(`${this.url}-/user/org.couchdb.user:tester`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'tester', password: 'tester-of-eitri' }),
    });
    const { token } = (await response.json()) as { readonly token?: string };
    if (token === undefined) throw new Error(`the registry gives no token: ${String(response.status)}`);
    return token;
  }
}
