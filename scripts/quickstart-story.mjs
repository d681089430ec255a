/**
 * The story of scripts/quickstart: one agent, one manifest, one real guest, driven through the commands that an operator
 * types. With --check every claim is measured on the guest, and what the run leaves behind is looked for.
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

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BIN = join(ROOT, 'bin', 'run.js');
const GUEST = process.env['EITRI_TEST_GUEST'] ?? join(ROOT, '.cache', 'guest');
const NAME = 'quick';
/** A guest boots in seconds where it is quiet, and in a minute on a loaded machine without hardware acceleration. */
const BOOT_MS = 240_000;

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

class Scratch {
  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
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
    const options = { maxBuffer: 16 * 2 ** 20, signal };
    const { stdout, failure } = await run(process.execPath, [BIN, ...args, ...this.places], options).catch((error) => ({
      stdout: '',
      failure: error.stderr?.trim() || String(error),
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

  async vm() {
    if (!alive(this.agentPid())) throw new Hopeless('the agent ended');
    return JSON.parse(await this.cli('vm', 'show', NAME, '--json'));
  }

  agentPid() {
    return Number(readFileSync(this.pidFile, 'utf8'));
  }

  startAgent() {
    interruption.signal.throwIfAborted();
    const log = openSync(this.log, 'a');
    const child = spawn(
      process.execPath,
      [
        BIN,
        'run',
        '--local',
        this.manifests,
        ...this.places,
        '--backend',
        'qemu',
        '--guest-network',
        'user',
        '--tombstone-grace',
        '3s',
        '--bootstrap-url',
        '',
      ],
      { detached: true, stdio: ['ignore', log, log] },
    );
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
    const now = await scratch.vm();
    if (now.phase !== phase && now.phase === 'Failed') throw new Hopeless(`the guest is Failed: ${now.message}`);
    return now.phase === phase ? now : undefined;
  });
}

/** @param {Scratch} scratch */
async function declare(scratch) {
  mkdirSync(scratch.manifests, { recursive: true });
  await scratch.cli('local', 'init', scratch.manifests);
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'quickstart', '-f', scratch.key]);
  const [http, ssh] = [await freePort(), await freePort()];
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
  exposures:
    - {hostAddress: 127.0.0.1, hostPort: ${http}, guestPort: 80, protocol: tcp}
    - {hostAddress: 127.0.0.1, hostPort: ${ssh}, guestPort: 22, protocol: tcp}
`;
  writeFileSync(join(scratch.manifests, `${NAME}.yaml`), manifest);
  return { http, ssh };
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

/** Files below a folder. @param {string} folder @returns {string[]} */
const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));

/** @param {Scratch} scratch */
async function endAgent(scratch) {
  const pid = scratch.agentPid();
  if (!alive(pid)) return;
  process.kill(pid, 'SIGTERM');
  await until('the agent ends', 60_000, () => !alive(pid));
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
  rmSync(scratch.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** @param {Scratch} scratch */
async function check(scratch) {
  /** @type {Record<string, unknown>} */
  const user = {};
  const ports = await declare(scratch);
  const agent = scratch.startAgent();
  await until('the agent answers', 60_000, () => scratch.answers());
  say(`agent runs (pid ${agent.pid})`);

  await untilPhase(scratch, 'Running');
  let tty = new Console(scratch);
  await tty.expect(new RegExp(`${NAME} login: `));
  user['login'] = true;
  say('login prompt seen on the console');

  const before = await scratch.vm();
  const banner = tty.text;
  user['seed'] = banner.includes(`tiny: seed=ok`) && banner.includes(`instance-id=${before.uid} hostname=${NAME}`);
  user['gpt'] = /boot-count=\d+ gpt=(\S+)/.exec(banner)?.[1];
  user['bootCount'] = Number(/boot-count=(\d+)/.exec(banner)?.[1]);
  say(`seed found: ${user['seed']}, GPT after growing: ${user['gpt']}, boot ${user['bootCount']}`);

  const page = await until('the web page', 60_000, async () => {
    const response = await fetch(`http://127.0.0.1:${ports.http}/`, { signal: interruption.signal });
    return { status: response.status, body: await response.text() };
  });
  user['http'] = page.status;
  say(`GET http://127.0.0.1:${ports.http}/ → ${page.status}: ${page.body.trim()}`);

  process.kill(scratch.agentPid(), 'SIGKILL');
  await until('the agent is gone', 30_000, () => !alive(scratch.agentPid()));
  await tty.close();
  scratch.startAgent();
  const after = await untilPhase(scratch, 'Running');
  const vmms = processesOf(scratch.folder).filter(({ line }) => line.includes('qemu-system')).length;
  tty = new Console(scratch);
  await until('the console is attached again', 60_000, async () => {
    tty.type('echo back-again');
    return await tty.expect(/back-again\r?\n/, 5_000);
  });
  user['adopted'] = after.pid === before.pid && vmms === 1;
  say(`agent killed and started again: VMM ${before.pid} → ${after.pid}, ${vmms} VMM, console answers`);

  tty.type('reboot');
  const second = await tty.expect(/boot-count=(\d+)/);
  await tty.expect(new RegExp(`${NAME} login: `));
  const rebooted = await scratch.vm();
  user['reboot'] = {
    bootCount: Number(second[1]),
    sameDisk: rebooted.uid === before.uid && rebooted.pid === before.pid,
  };
  say(`rebooted inside the guest: boot ${second[1]}`);

  await scratch.cli('vm', 'stop', NAME);
  const stopped = await untilPhase(scratch, 'Stopped');
  const log = await scratch.cli('vm', 'logs', NAME);
  user['stopped'] = stopped.lastExit?.cause === 'stop' && /tiny: power button[\s\S]*tiny: clean/.test(log);
  say('powered off cleanly on vm stop');
  await tty.close();

  await scratch.cli('vm', 'delete', NAME);
  await until('the VM is gone', 120_000, async () => {
    return JSON.parse(await scratch.cli('vm', 'list', '--json')).length === 0;
  });
  user['deleted'] = true;
  say('deleted after its grace');

  await endAgent(scratch);
  user['leftovers'] = await leftovers(scratch, ports);
  user['seconds'] = Math.round((performance.now() - started) / 1000);
  return user;
}

/** What a VM and an agent that are gone must not leave. @param {Scratch} scratch @param {{http: number, ssh: number}} ports */
async function leftovers(scratch, ports) {
  const left = [];
  for (const { pid, line } of processesOf(scratch.folder)) left.push(`process ${pid}: ${line}`);
  for (const file of filesBelow(scratch.run)) left.push(`socket or file ${file}`);
  for (const folder of readdirSync(join(scratch.state, 'vms'))) left.push(`folder vms/${folder}`);
  for (const port of Object.values(ports)) if (await listens(port)) left.push(`port ${port}`);
  return left;
}

/** @param {Scratch} scratch */
async function show(scratch) {
  say(`scratch folder ${scratch.folder}`);
  const ports = await declare(scratch);
  const agent = scratch.startAgent();
  await until('the agent answers', 60_000, () => scratch.answers());
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
  console.log(`
The guest ${NAME} and its agent run on. Try:
  console   ${cli} vm console ${NAME} ${places}
            (type "echo hello", "reboot"; leave with Ctrl-])
  ssh       ssh -i ${scratch.key} -p ${ports.ssh} -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no root@127.0.0.1
  web page  curl http://127.0.0.1:${ports.http}/
  logs      ${cli} vm logs ${NAME} ${places}
  list      ${cli} vm list ${places}
  events    ${cli} vm events --follow ${places}
  agent     tail -f ${scratch.log}
  stop      scripts/quickstart --stop ${scratch.folder}`);
}

/** Measures, prints what was measured as JSON, and answers whether all of it holds. @param {Scratch} scratch */
async function checked(scratch) {
  const user = await check(scratch);
  console.log(JSON.stringify({ user }));
  return (
    user['login'] === true && user['http'] === 200 && user['seed'] === true && user['gpt'] === 'ok' &&
    user['bootCount'] === 1 && user['adopted'] === true && user['stopped'] === true && user['deleted'] === true &&
    JSON.stringify(user['reboot']) === JSON.stringify({ bootCount: 2, sameDisk: true }) &&
    Array.isArray(user['leftovers']) && user['leftovers'].length === 0
  ); // prettier-ignore
}

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

/** @param {boolean} checking */
async function tell(checking) {
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
  const scratch = new Scratch(realpathSync(await mkdtemp(join(tmpdir(), 'eitri-quick-'))));
  let good = false;
  try {
    // Run by root, the agent has images converted by a user without rights, who must get as far as its state directory.
    chmodSync(scratch.folder, 0o711);
    if (checking) good = await checked(scratch);
    else await show(scratch).then(() => (good = true));
    interruption.signal.throwIfAborted();
  } catch (error) {
    good = false;
    tellFailure(error, scratch);
  }
  if (!good) process.exitCode ??= 1;
  if (checking || !good) await tearDown(scratch);
}

const [mode, folder] = process.argv.slice(2);
if (mode === '--stop') {
  const given = resolve(folder ?? '');
  const scratch = new Scratch(existsSync(given) ? realpathSync(given) : given);
  // It is removed with all that is in it: nothing but a folder that a run of this script made.
  if (!/^eitri-quick-/.test(basename(scratch.folder)) || !existsSync(scratch.pidFile)) {
    console.error(`scripts/quickstart: ${scratch.folder} is no scratch folder of an earlier run`);
    process.exitCode = 64;
  } else {
    await tearDown(scratch);
    say('stopped and removed');
  }
} else {
  await tell(mode === '--check');
}
