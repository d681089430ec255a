/**
 * The host of the story `bridge`: a network namespace, so that bridge, rules and DHCP server are made where nothing of this
 * machine's network is, and everything goes when it does. The whole agent runs in it.
 *
 * Beside the agent a name server stands there, for one name of a zone that exists nowhere else: a guest that resolves it
 * asked through us. Owns the namespace, its folder below /etc/netns, and that server.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Where `ip` looks for files that stand in the place of /etc's, and where it keeps namespaces. */
const ETC_NETNS = '/etc/netns';
const RUN_NETNS = '/run/netns';
/** For documentation (RFC 5737): nobody's. */
const NAME_SERVER = '192.0.2.53';
const END_MS = 20_000;
/** Of a program in the namespace, so that this one needs no tool for it. */
const GET = `const answer = await fetch(process.argv[1], { signal: AbortSignal.timeout(5000) });
console.log(JSON.stringify({ status: answer.status, body: await answer.text() }));`;

export class BridgeHost {
  /** The plugin is taken because it is there: the default is part of the story. @type {readonly string[]} */
  flags = [];
  exposures = '';
  record = { name: 'answer.quick.test', address: '192.0.2.80' };

  /** @param {string} folder The scratch folder, whose name it has. */
  constructor(folder) {
    this.name = basename(folder);
    this.before = ['ip', 'netns', 'exec', this.name];
  }

  /** @param {string} folder */
  static isThere(folder) {
    return existsSync(join(RUN_NETNS, basename(folder)));
  }

  /** Why no such host can be made on this machine; undefined: it can. */
  static async barred() {
    const probe = `eitri-quick-probe-${process.pid}`;
    try {
      await run('ip', ['netns', 'add', probe]);
      await run('ip', ['netns', 'exec', probe, 'nft', 'list', 'tables']);
      return undefined;
    } catch (error) {
      const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n')[0] : '';
      const why = said === '' || said === undefined ? String(error) : said;
      return `network namespaces can't be made or used here (it needs root, and a container needs CAP_SYS_ADMIN and CAP_NET_ADMIN): ${why}`;
    } finally {
      if (existsSync(join(RUN_NETNS, probe))) await run('ip', ['netns', 'delete', probe]);
    }
  }

  /** Runs a program in it; answers what it printed. @param {readonly string[]} words */
  async exec(...words) {
    const { stdout } = await run('ip', ['netns', 'exec', this.name, ...words], { timeout: 120_000 });
    return stdout;
  }

  async make() {
    // First: what runs in the namespace sees it from its start.
    mkdirSync(join(ETC_NETNS, this.name), { recursive: true });
    writeFileSync(join(ETC_NETNS, this.name, 'resolv.conf'), `nameserver ${NAME_SERVER}\n`);
    await run('ip', ['netns', 'add', this.name]);
    await this.exec('ip', 'link', 'set', 'lo', 'up');
    await this.exec('ip', 'address', 'add', `${NAME_SERVER}/32`, 'dev', 'lo');
    const { name, address } = this.record;
    const own = ['--conf-file=/dev/null', '--pid-file=', '--no-hosts', '--no-resolv', '--keep-in-foreground'];
    const server = [...own, `--listen-address=${NAME_SERVER}`, '--bind-interfaces', `--host-record=${name},${address}`];
    const [program = '', ...args] = [...this.before, 'dnsmasq', ...server];
    // It outlives this script where guest and agent do.
    spawn(program, args, { detached: true, stdio: 'ignore' }).unref();
  }

  /** @param {{address?: string}} vm */
  pageUrl({ address }) {
    return `http://${address ?? 'no-address'}/`;
  }

  /** @param {string} url @returns {Promise<{status: number, body: string}>} */
  async get(url) {
    return JSON.parse(await this.exec(process.execPath, '--input-type=module', '-e', GET, url));
  }

  /** @returns {Promise<string[]>} */
  async devices() {
    /** @type {{ifname: string}[]} */
    const links = JSON.parse(await this.exec('ip', '-json', 'link', 'show'));
    return links.map(({ ifname }) => ifname);
  }

  /** What of the guests' network is left on it. */
  async left() {
    const devices = (await this.devices()).filter((name) => name !== 'lo');
    const tables = (await this.exec('nft', 'list', 'tables')).split('\n').filter((line) => line !== '');
    const servers = await this.processes('/dhcp/dnsmasq.conf');
    return [
      ...devices.map((name) => `device ${name}`),
      ...tables,
      ...servers.map((line) => `dnsmasq still runs: ${line}`),
    ];
  }

  /** Ends what runs in it, and removes it and its files. Idempotent. */
  async remove() {
    if (existsSync(join(RUN_NETNS, this.name))) {
      const end = performance.now() + END_MS;
      for (let left = await this.pids(); left.length > 0; left = await this.pids()) {
        if (performance.now() > end) throw new Error(`processes in ${this.name} do not end: ${left.join(' ')}`);
        for (const pid of left) {
          try {
            process.kill(pid, 'SIGKILL');
          } catch {
            // It has ended.
          }
        }
        await sleep(50);
      }
      await run('ip', ['netns', 'delete', this.name]);
    }
    rmSync(join(ETC_NETNS, this.name), { recursive: true, force: true });
    // Another's namespace may have its files there, too.
    if (existsSync(ETC_NETNS) && readdirSync(ETC_NETNS).length === 0) rmdirSync(ETC_NETNS);
  }

  async pids() {
    const { stdout } = await run('ip', ['netns', 'pids', this.name]);
    return stdout.split('\n').filter(Boolean).map(Number);
  }

  /** Command lines in it that hold this. @param {string} word */
  async processes(word) {
    const lines = [];
    for (const pid of await this.pids()) {
      const line = (await this.exec('cat', `/proc/${pid}/cmdline`).catch(() => '')).replaceAll('\0', ' ');
      if (line.includes(word)) lines.push(line.trim());
    }
    return lines;
  }
}
