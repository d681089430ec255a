/**
 * The stories of scripts/quickstart: one agent, one manifest, one real guest, driven through the commands that an operator
 * types. In the story `user` the guest has a network of its own, in `bridge` it is on its host's (quickstart-bridge.mjs).
 * With --check both are told, every claim is measured on the guest, and what the run leaves behind is looked for.
 *
 * The agent writes to a file of the scratch folder, never to what this script was given: it outlives the script, and would
 * hold a pipe open or write over a shell's prompt. A story that fails or is interrupted tears down all that it made: a
 * signal makes each wait, and each next start of a process, throw, so that it unwinds to the one place that tears down.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fileIdentity, holdsOpen, howItEnded, leftInRun, leftInState } from './lib/story-measures.mjs';
import { BridgeHost } from './quickstart-bridge.mjs';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BIN = join(ROOT, 'bin', 'run.js');
const GUEST = process.env['EITRI_TEST_GUEST'] ?? join(ROOT, '.cache', 'guest');
const NAME = 'quick';
/** A guest boots in seconds where it is quiet, and in a minute on a loaded machine without hardware acceleration. */
const BOOT_MS = 240_000;
/** A command that takes longer hangs: on a loaded machine it takes seconds only to be read from the disk. */
const COMMAND_MS = 120_000;
/** Long enough for a look at the VM within it, on a loaded machine too. */
const GRACE_S = 20;

const started = performance.now();
/** Aborted by the signal that ends the story early, its reason the sentence that says so. */
const interruption = new AbortController();
/** @type {Record<string, number>} */
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** What asking again will not mend. */
class Hopeless extends Error {}

const say = (/** @type {string} */ line) =>
  console.log(`${String(Math.round((performance.now() - started) / 1000)).padStart(4)} s  ${line}`);

/**
 * Asks again until it holds.
 * @template T
 * @param {string} what @param {number} timeoutMs @param {() => Promise<T | undefined> | T | undefined} ask
 * @returns {Promise<T>}
 */
async function until(what, timeoutMs, ask) {
  const end = performance.now() + timeoutMs;
  let last;
  while (performance.now() < end) {
    interruption.signal.throwIfAborted();
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      last = error;
    }
    await sleep(200);
  }
  throw new Error(`${what}: not reached within ${timeoutMs / 1000} s`, { cause: last });
}

/** A free port of the loopback address. */
async function freePort() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** The guest has a network of its own, and is reached through ports of this machine's loopback. */
class UserNetwork {
  flags = ['--guest-network', 'user'];
  /** @type {readonly string[]} */
  before = [];
  /** @type {readonly number[]} */
  ports = [];

  async make() {
    this.ports = [await freePort(), await freePort()];
  }

  get exposures() {
    const lines = [80, 22].map(
      (port, at) => `    - {hostAddress: 127.0.0.1, hostPort: ${this.ports[at]}, guestPort: ${port}, protocol: tcp}\n`,
    );
    return `  exposures:\n${lines.join('')}`;
  }

  pageUrl() {
    return `http://127.0.0.1:${this.ports[0]}/`;
  }

  /** @param {string} url */
  async get(url) {
    const response = await fetch(url, { signal: interruption.signal });
    return { status: response.status, body: await response.text() };
  }

  async left() {
    const left = [];
    for (const port of this.ports) if (await listens(port)) left.push(`port ${port}`);
    return left;
  }

  async remove() {}
}

class Scratch {
  /** @param {string} folder @param {UserNetwork | BridgeHost} network */
  constructor(folder, network) {
    this.folder = folder;
    this.network = network;
    this.state = join(folder, 'state');
    this.run = join(folder, 'run');
    this.manifests = join(folder, 'vms');
    this.key = join(folder, 'key');
    this.pidFile = join(folder, 'agent.pid');
    this.log = join(folder, 'agent.log');
    this.places = ['--state-dir', this.state, '--run-dir', this.run];
  }

  /** @param {readonly string[]} args */
  async cli(...args) {
    const { signal } = interruption;
    signal.throwIfAborted();
    const options = {
      maxBuffer: 16 * 2 ** 20,
      signal,
      timeout: COMMAND_MS,
      killSignal: /** @type {const} */ ('SIGKILL'),
    };
    const { stdout, failure } = await run(process.execPath, [BIN, ...args, ...this.places], options).catch((error) => ({
      stdout: '',
      failure: howItEnded(error, COMMAND_MS),
    }));
    if (failure === undefined) return stdout;
    signal.throwIfAborted();
    throw new Error(`eitri-agent ${args.join(' ')}: ${failure}`);
  }

  /** Whether the agent answers; it never will when it has ended. */
  async answers() {
    if (!alive(this.agentPid())) throw new Hopeless('the agent ended');
    await this.cli('status');
    return true;
  }

  /** One look at the VM, for those who ask again. */
  async glance() {
    if (!alive(this.agentPid())) throw new Hopeless('the agent ended');
    return JSON.parse(await this.cli('vm', 'show', NAME, '--json'));
  }

  /** The VM as the agent shows it: a look that fails, as one does in the moment of a restart, is taken again. */
  async vm() {
    return await until('the agent shows the VM', BOOT_MS, () => this.glance());
  }

  agentPid() {
    return Number(readFileSync(this.pidFile, 'utf8'));
  }

  startAgent() {
    interruption.signal.throwIfAborted();
    const log = openSync(this.log, 'a');
    const flags = [
      '--backend',
      'qemu',
      ...this.network.flags,
      '--tombstone-grace',
      `${GRACE_S}s`,
      '--bootstrap-url',
      '',
    ];
    const words = [process.execPath, BIN, 'run', '--local', this.manifests, ...this.places, ...flags];
    const [program = '', ...args] = [...this.network.before, ...words];
    const child = spawn(program, args, { detached: true, stdio: ['ignore', log, log] });
    closeSync(log);
    if (child.pid === undefined) throw new Error('the agent could not be started');
    writeFileSync(this.pidFile, String(child.pid));
    child.unref();
    return child;
  }
}

/** What an operator types to see what happens to VMs; shown line by line. */
class Events {
  /** @param {Scratch} scratch */
  constructor(scratch) {
    interruption.signal.throwIfAborted();
    this.child = spawn(process.execPath, [BIN, 'vm', 'events', '--follow', ...scratch.places], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.lines = createInterface(this.child.stdout);
    this.lines.on('line', (line) => say(`  ${line}`));
  }

  async close() {
    this.lines.close();
    await ended(this.child);
  }
}

/** Ends a command. @param {import('node:child_process').ChildProcess} child */
async function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** What an operator types to watch and use the guest's console. */
class Console {
  /** @param {Scratch} scratch */
  constructor(scratch) {
    interruption.signal.throwIfAborted();
    this.text = '';
    this.child = spawn(process.execPath, [BIN, 'vm', 'console', NAME, '--force', ...scratch.places], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.child.stdout.setEncoding('utf8').on('data', (chunk) => (this.text += chunk));
    // The command may end before all that was typed has reached it.
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.setEncoding('utf8').on('data', (chunk) => (this.errors += chunk));
    this.errors = '';
    this.seen = 0;
  }

  /** @param {string} line */
  type(line) {
    this.seen = this.text.length;
    this.child.stdin.write(`${line}\n`);
  }

  /** @param {RegExp} pattern @param {number} timeoutMs */
  async expect(pattern, timeoutMs = BOOT_MS) {
    return await until(`console: ${pattern}`, timeoutMs, () => {
      if (this.child.exitCode !== null) throw new Error(`the console ended: ${this.errors}`);
      return pattern.exec(this.text.slice(this.seen)) ?? undefined;
    });
  }

  async close() {
    await ended(this.child);
  }
}

/**
 * The VM, once it is so; a VM that failed will not become so, and says why.
 * @param {Scratch} scratch @param {string} phase
 */
async function untilPhase(scratch, phase) {
  return await until(`the guest is ${phase}`, BOOT_MS, async () => {
    const now = await scratch.glance();
    if (now.phase !== phase && now.phase === 'Failed') throw new Hopeless(`the guest is Failed: ${now.message}`);
    return now.phase === phase ? now : undefined;
  });
}

/** @param {Scratch} scratch */
async function declare(scratch) {
  mkdirSync(scratch.manifests, { recursive: true });
  await scratch.cli('local', 'init', scratch.manifests);
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'quickstart', '-f', scratch.key]);
  const manifest = `apiVersion: eitri/v1
kind: VirtualMachine
metadata:
  name: ${NAME}
spec:
  cpus: 1
  memory: 256MiB
  disk: 1GiB
  image:
    url: file://${resolve(GUEST, 'tiny.qcow2')}
  sshKeys:
    - ${readFileSync(`${scratch.key}.pub`, 'utf8').trim()}
${scratch.network.exposures}`;
  writeFileSync(join(scratch.manifests, `${NAME}.yaml`), manifest);
}

/** Processes whose command line names the scratch folder, but for this one. @param {string} folder */
function processesOf(folder) {
  const found = [];
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (Number(pid) === process.pid) continue;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      if (line.includes(`${folder}/`)) found.push({ pid: Number(pid), line });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

/** @param {number} pid */
const alive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** @param {number} port */
async function listens(port) {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** @param {Scratch} scratch */
async function endAgent(scratch) {
  const pid = scratch.agentPid();
  if (!alive(pid)) return;
  process.kill(pid, 'SIGTERM');
  await until('the agent ends', COMMAND_MS, () => !alive(pid));
}

/** Ends everything that a run started, whatever state it is in, and removes its folder. @param {Scratch} scratch */
async function tearDown(scratch) {
  // The agent, its tools and guests, commands of ours; an editor or a shell of the operator's that stands in the folder is
  // not. Never by the pid on file alone: it may be another's by now.
  const ours = () => processesOf(scratch.folder).filter(({ line }) => /\bqemu-|bin\/run\.js/.test(line));
  const end = performance.now() + 30_000;
  for (let left = ours(); left.length > 0; left = ours()) {
    if (performance.now() > end) throw new Error(`does not end: ${left.map(({ line }) => line).join('; ')}`);
    for (const { pid } of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
    await sleep(50);
  }
  await scratch.network.remove();
  rmSync(scratch.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** @param {Scratch} scratch */
async function check(scratch) {
  /** @type {Record<string, unknown>} */
  const seen = {};
  const { network } = scratch;
  const begun = performance.now();
  await network.make();
  await declare(scratch);
  const agent = scratch.startAgent();
  await until('the agent answers', BOOT_MS, () => scratch.answers());
  say(`agent runs (pid ${agent.pid})`);

  await untilPhase(scratch, 'Running');
  let tty = new Console(scratch);
  await tty.expect(new RegExp(`${NAME} login: `));
  seen['login'] = true;
  say('login prompt seen on the console');

  const before = await scratch.vm();
  const disk = before.paths.rootDisk;
  const diskBefore = fileIdentity(disk);
  const banner = tty.text;
  seen['seed'] = banner.includes(`tiny: seed=ok`) && banner.includes(`instance-id=${before.uid} hostname=${NAME}`);
  seen['gpt'] = /boot-count=\d+ gpt=(\S+)/.exec(banner)?.[1];
  seen['bootCount'] = Number(/boot-count=(\d+)/.exec(banner)?.[1]);
  say(`seed found: ${seen['seed']}, GPT after growing: ${seen['gpt']}, boot ${seen['bootCount']}`);
  const bridge = network instanceof BridgeHost ? new BridgeMeasures(scratch, network, before) : undefined;
  Object.assign(seen, await bridge?.first(tty));

  const url = network.pageUrl(before);
  const page = await until('the web page', COMMAND_MS, () => network.get(url));
  seen['http'] = page.status;
  say(`GET ${url} → ${page.status}: ${page.body.trim()}`);

  process.kill(scratch.agentPid(), 'SIGKILL');
  await until('the agent is gone', 30_000, () => !alive(scratch.agentPid()));
  await tty.close();
  scratch.startAgent();
  const after = await untilPhase(scratch, 'Running');
  const vmms = processesOf(scratch.folder).filter(({ line }) => line.includes('qemu-system')).length;
  tty = new Console(scratch);
  await until('the console is attached again', COMMAND_MS, async () => {
    tty.type('echo back-again');
    return await tty.expect(/back-again\r?\n/, 5_000);
  });
  seen['adopted'] = after.pid === before.pid && vmms === 1;
  say(`agent killed and started again: VMM ${before.pid} → ${after.pid}, ${vmms} VMM, console answers`);
  const keptOverAgents = await bridge?.same();

  tty.type('reboot');
  const second = await tty.expect(/boot-count=(\d+)/);
  await tty.expect(new RegExp(`${NAME} login: `));
  const rebooted = await scratch.vm();
  seen['reboot'] = {
    bootCount: Number(second[1]),
    sameDisk:
      rebooted.uid === before.uid &&
      rebooted.paths.rootDisk === disk &&
      fileIdentity(disk) === diskBefore &&
      holdsOpen(rebooted.pid, diskBefore),
  };
  say(`rebooted inside the guest: boot ${second[1]}, disk ${diskBefore} → ${fileIdentity(disk)}`);
  if (bridge !== undefined) {
    seen['sameAddress'] = keptOverAgents === true && (await bridge.leased(tty)) && (await bridge.same());
    say(`address after a restart of the agent and a reboot of the guest: the same: ${seen['sameAddress']}`);
  }

  await scratch.cli('vm', 'stop', NAME);
  const stopped = await untilPhase(scratch, 'Stopped');
  const log = await until('the agent shows the log', BOOT_MS, () => scratch.cli('vm', 'logs', NAME));
  seen['stopped'] = stopped.lastExit?.cause === 'stop' && /tiny: power button[\s\S]*tiny: clean/.test(log);
  say('powered off cleanly on vm stop');
  await tty.close();

  const deletedAt = performance.now();
  await scratch.cli('vm', 'delete', NAME);
  const shelved = await untilPhase(scratch, 'Shelved');
  const keptInGrace = shelved.wanted === 'deleted' && shelved.uid === before.uid && fileIdentity(disk) === diskBefore;
  say(`deleted: shelved with its disk while its grace runs: ${keptInGrace}`);
  await until('the VM is gone', BOOT_MS, async () => {
    return JSON.parse(await scratch.cli('vm', 'list', '--json')).length === 0;
  });
  const afterS = (performance.now() - deletedAt) / 1000;
  seen['deleted'] = keptInGrace && afterS >= GRACE_S && fileIdentity(disk) === undefined;
  say(`gone with its disk ${Math.round(afterS)} s after it was deleted, its grace ${GRACE_S} s`);

  const left = (await bridge?.leftOfGuest()) ?? [];
  await endAgent(scratch);
  await bridge?.tearDown();
  seen['leftovers'] = [...left, ...(await leftovers(scratch))];
  seen['seconds'] = Math.round((performance.now() - begun) / 1000);
  return seen;
}

/** What is measured of a guest on its host's network. */
class BridgeMeasures {
  /** @param {Scratch} scratch @param {BridgeHost} host @param {{address?: string, mac: string}} vm */
  constructor(scratch, host, vm) {
    this.scratch = scratch;
    this.host = host;
    this.mac = vm.mac;
    this.address = vm.address ?? '';
  }

  /** @param {Console} tty */
  async first(tty) {
    const address = await this.leased(tty);
    say(`leased by the guests' own DHCP server, as reserved: ${this.address}: ${address}`);
    const { name, address: answer } = this.host.record;
    tty.type(`sh nslookup ${name}`);
    const said = await tty.expect(/rc=\d+\r?\n/);
    const dns = said.input.includes(answer);
    say(`${name} resolved in the guest: ${dns}`);
    return { address, dns };
  }

  /** Whether the guest says that it has its address, and the server that it leased the one that is reserved. @param {Console} tty */
  async leased(tty) {
    const [, told] = await tty.expect(/tiny: eth0 ip=([\d.]+)\/.* lease=\d/);
    const lease = this.leases().find((words) => words[1] === this.mac)?.[2];
    const reserved = readFileSync(join(this.scratch.run, 'dhcp', 'hosts'), 'utf8').split(/[\s,]+/);
    const at = reserved.indexOf(this.mac);
    return this.address !== '' && told === this.address && lease === told && at >= 0 && reserved.includes(told, at);
  }

  /** Whether the agent says that it has its address, and it answers there. */
  async same() {
    const { address } = await this.scratch.vm();
    const page = await until('the web page', COMMAND_MS, () =>
      this.host.get(this.host.pageUrl({ address: this.address })),
    );
    return address === this.address && page.status === 200;
  }

  async leftOfGuest() {
    const taps = (await this.host.devices()).filter((name) => name.startsWith('ei') && name !== 'eitri0');
    return [...taps.map((name) => `tap ${name}`), ...this.leases().map((words) => `lease ${words.join(' ')}`)];
  }

  async tearDown() {
    const { network, places } = this.scratch;
    await this.host.exec(
      process.execPath,
      BIN,
      'network',
      'teardown',
      ...network.flags,
      '--backend',
      'qemu',
      ...places,
    );
    say("the guests' network is taken down");
  }

  leases() {
    const lines = readFileSync(join(this.scratch.run, 'dhcp', 'leases'), 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => line.split(' '));
  }
}

/** What a VM and an agent that are gone must not leave. @param {Scratch} scratch */
async function leftovers(scratch) {
  const left = [];
  for (const { pid, line } of processesOf(scratch.folder)) left.push(`process ${pid}: ${line}`);
  left.push(...leftInRun(scratch.run).map((path) => `run/${path}`));
  left.push(...leftInState(scratch.state).map((path) => `state/${path}`));
  return [...left, ...(await scratch.network.left())];
}

/** @param {Scratch} scratch */
async function show(scratch) {
  const { network } = scratch;
  say(`scratch folder ${scratch.folder}`);
  await network.make();
  await declare(scratch);
  const agent = scratch.startAgent();
  await until('the agent answers', BOOT_MS, () => scratch.answers());
  say(`agent runs (pid ${agent.pid}), log ${scratch.log}`);
  const events = new Events(scratch);
  try {
    await untilPhase(scratch, 'Running');
    const tty = new Console(scratch);
    try {
      await tty.expect(new RegExp(`${NAME} login: `));
    } finally {
      await tty.close();
    }
  } finally {
    await events.close();
  }
  say('the guest is up');
  const cli = `node ${BIN}`;
  const places = scratch.places.join(' ');
  const url = network.pageUrl(await scratch.vm());
  const [inside, to] =
    network instanceof UserNetwork
      ? ['', `-p ${network.ports[1]} root@127.0.0.1`]
      : [`${network.before.join(' ')} `, `root@${new URL(url).hostname}`];
  console.log(`
The guest ${NAME} and its agent run on. Try:
  console   ${cli} vm console ${NAME} ${places}
            (type "echo hello", "reboot"; leave with Ctrl-])
  ssh       ${inside}ssh -i ${scratch.key} -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no ${to}
  web page  ${inside}curl ${url}
  logs      ${cli} vm logs ${NAME} ${places}
  list      ${cli} vm list ${places}
  events    ${cli} vm events --follow ${places}
  agent     tail -f ${scratch.log}
  stop      scripts/quickstart --stop ${scratch.folder}`);
}

/** Whether all that a story measured holds. @param {Record<string, unknown>} seen @param {boolean} bridge */
const holds = (seen, bridge) =>
  seen['login'] === true && seen['http'] === 200 && seen['seed'] === true && seen['gpt'] === 'ok' &&
  seen['bootCount'] === 1 && seen['adopted'] === true && seen['stopped'] === true && seen['deleted'] === true &&
  JSON.stringify(seen['reboot']) === JSON.stringify({ bootCount: 2, sameDisk: true }) &&
  Array.isArray(seen['leftovers']) && seen['leftovers'].length === 0 &&
  (!bridge || (seen['address'] === true && seen['sameAddress'] === true && seen['dns'] === true)); // prettier-ignore

/** Prints why the story ended early, in a sentence, and what the agent said last. @param {unknown} error @param {Scratch} scratch */
function tellFailure(error, scratch) {
  const chain = [];
  for (let at = error; at !== undefined; at = at instanceof Error ? at.cause : undefined)
    chain.push(at instanceof Error ? at.message : String(at));
  if (interruption.signal.aborted) return console.error(`scripts/quickstart: ${chain.join(': ')}`);
  console.error(`scripts/quickstart: failed: ${chain.join(': ')}`);
  if (!existsSync(scratch.log)) return;
  const lines = readFileSync(scratch.log, 'utf8').trimEnd().split('\n').slice(-20);
  console.error(`the agent's last lines:\n${lines.map((line) => `  ${line}`).join('\n')}`);
}

/**
 * Works in a scratch folder; what goes wrong there is told, and then nothing of it is left.
 * @template T
 * @param {UserNetwork | undefined} network Undefined: the host's own, a namespace. @param {boolean} keep
 * @param {(scratch: Scratch) => Promise<T>} work @returns {Promise<T | undefined>}
 */
async function inScratch(network, keep, work) {
  const folder = realpathSync(await mkdtemp(join(tmpdir(), 'eitri-quick-')));
  const scratch = new Scratch(folder, network ?? new BridgeHost(folder));
  /** @type {T | undefined} */
  let done;
  try {
    // Run by root, the agent has images converted by a user without rights, who must get as far as its state directory.
    chmodSync(scratch.folder, 0o711);
    done = await work(scratch);
    interruption.signal.throwIfAborted();
  } catch (error) {
    done = undefined;
    tellFailure(error, scratch);
  }
  if (!keep || done === undefined) await tearDown(scratch);
  return done;
}

/** Tells all stories that this machine can tell, and ends with what was measured, as JSON. */
async function checkAll() {
  const barred = await BridgeHost.barred();
  if (barred !== undefined) say(`the story "bridge" can not be told here: ${barred}`);
  say('story "user": the guest has a network of its own');
  const user = await inScratch(new UserNetwork(), false, check);
  if (user === undefined) return false;
  if (barred !== undefined) {
    console.log(JSON.stringify({ user }));
    console.error(`scripts/quickstart: the story "bridge" was not told: ${barred}`);
    process.exitCode ??= 78;
    return false;
  }
  say('story "bridge": the guest is on the network of its host, a namespace');
  const bridge = await inScratch(undefined, false, check);
  if (bridge === undefined) return false;
  console.log(JSON.stringify({ user, bridge }));
  return holds(user, false) && holds(bridge, true);
}

/** @param {UserNetwork | undefined} network */
async function showOne(network) {
  const barred = network === undefined ? await BridgeHost.barred() : undefined;
  if (barred !== undefined) {
    console.error(`scripts/quickstart: --bridge can't work here: ${barred}`);
    process.exitCode = 78;
    return false;
  }
  return (await inScratch(network, true, async (scratch) => show(scratch).then(() => true))) === true;
}

/** @param {() => Promise<boolean>} stories */
async function tell(stories) {
  // At first, so that there is no moment in which something stands and a signal would leave it.
  for (const [name, exitCode] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      process.exitCode = exitCode;
      interruption.abort(new Error(`interrupted by ${name}: tearing down`));
    });
  }
  // Whoever read the story has gone.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', () => interruption.abort(new Error('nobody reads this: tearing down')));
  }
  if (!(await stories())) process.exitCode ??= 1;
}

const [mode, folder] = process.argv.slice(2);
if (mode === '--stop') {
  const given = resolve(folder ?? '');
  const at = existsSync(given) ? realpathSync(given) : given;
  const scratch = new Scratch(at, BridgeHost.isThere(at) ? new BridgeHost(at) : new UserNetwork());
  // It is removed with all that is in it: nothing but a folder that a run of this script made.
  if (!/^eitri-quick-/.test(basename(scratch.folder)) || !existsSync(scratch.pidFile)) {
    console.error(`scripts/quickstart: ${scratch.folder} is no scratch folder of an earlier run`);
    process.exitCode = 64;
  } else {
    await tearDown(scratch);
    say('stopped and removed');
  }
} else {
  await tell(mode === '--check' ? checkAll : () => showOne(mode === '--bridge' ? undefined : new UserNetwork()));
}
