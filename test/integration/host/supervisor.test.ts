import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { HostFacts, ProcessRef, ProcessState, StartRequest } from '@eitri/core/contracts';
import { errorLine, isPermanent } from '@eitri/core/kit';
import { formatPidFile, parsePidFile } from '../../../src/host/pid-file.js';
import {
  DetachedSupervisor,
  ExecaRunner,
  PinoLogger,
  ProcProcessTable,
  readHostFacts,
  realHostSources,
  realSupervisorOptions,
  SystemClock,
} from '../../../src/host/index.js';
import { bundle } from '../../support/bundle.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const never = new AbortController().signal;
const table = new ProcProcessTable();
const silent = PinoLogger.to({ write: () => undefined }, 'error');
const SHELL = realpathSync('/bin/sh');
/** Starts no process of its own: a fork would have the same command line for a moment. */
const IDLE = 'while :; do kill -STOP $$; done';
const CHATTY = 'while :; do echo line; sleep 0.05; done';

let facts: HostFacts;
beforeAll(async () => {
  facts = await readHostFacts(realHostSources(new ExecaRunner()), never);
});

const newAgent = (): DetachedSupervisor =>
  new DetachedSupervisor(new SystemClock(), silent, facts, realSupervisorOptions(table));

/** A shell that plays the VMM: after its script it has the option and value that a VMM would have. */
function vmm(script: string, folder = tempFolder(), executable = SHELL): StartRequest {
  const socket = join(folder, 'api.sock');
  onTestFinished(async () => {
    for (const pid of await pidsOf(socket)) process.kill(pid, 'SIGKILL');
  });
  return {
    pidFile: join(folder, 'vmm.pid'),
    logFile: join(folder, 'vmm.log'),
    identity: { executable, option: '--api-socket', value: socket },
    args: ['-c', script, 'sh', '--api-socket', socket],
  };
}

async function pidsOf(word: string): Promise<readonly number[]> {
  return (await table.commandLines()).filter(({ argv }) => argv.includes(word)).map(({ pid }) => pid);
}

const alive = async (pid: number): Promise<boolean> => (await table.startTime(pid)) !== undefined;

/** A process of somebody else. */
function stranger(...args: readonly string[]): number {
  const child = spawn('sleep', args.length > 0 ? args : ['600'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  if (child.pid === undefined) throw new Error('sleep did not start');
  return child.pid;
}

const observe = (agent: DetachedSupervisor, ref: ProcessRef): Promise<ProcessState> => agent.observe(ref, never);

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Starts it from another process, and gives that process's pid. */
async function startElsewhere(request: StartRequest, mode = ''): Promise<number> {
  const program = await bundle('host/starter.ts');
  const requestFile = `${request.pidFile}.request`;
  writeFileSync(requestFile, JSON.stringify(request));
  const child = spawn(process.execPath, [program, requestFile, mode], { stdio: ['ignore', 'ignore', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  if (child.pid === undefined) throw new Error('node did not start');
  return child.pid;
}

describe('a process that gives up its rights by itself', () => {
  const NOBODY = 65534;

  it('starts with those of the agent, and is found by its command line as the user that it became', async () => {
    const request = vmm('id -u; exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" -c "$1" sh "$2" "$3"');
    const { value, option, executable } = request.identity;
    const server: StartRequest = {
      ...request,
      identity: { ...request.identity, userId: NOBODY, dropsPrivileges: true },
      args: ['-c', request.args[1] ?? '', executable, `id -u; ${IDLE}`, option, value],
    };
    const { pid } = await newAgent().start(server, never);
    const agentUser = String(process.geteuid?.());
    await until(() => readFileSync(server.logFile, 'utf8') === `${agentUser}\n${NOBODY.toString()}\n`);
    rmSync(server.pidFile);
    expect(await observe(newAgent(), server)).toEqual({ state: 'alive', pid });
  });
});

describe('a process that is started', () => {
  it('leads a session of its own, writes to its log and not to a pipe, and is recorded when the start resolves', async () => {
    const request = vmm('echo out; echo err >&2; exec 0<&-; ' + IDLE);
    const { pid } = await newAgent().start(request, never);
    expect(parsePidFile(readFileSync(request.pidFile, 'utf8'))).toEqual({
      pid,
      bootId: facts.bootId,
      startTime: await table.startTime(pid),
    });
    expect(statSync(request.pidFile).mode & 0o777).toBe(0o600);
    const session = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[3];
    expect(Number(session)).toBe(pid);
    await until(() => readFileSync(request.logFile, 'utf8') === 'out\nerr\n');
    expect(statSync(request.logFile).mode & 0o777).toBe(0o600);
  });

  it('reads an empty standard input', async () => {
    const request = vmm('cat; echo end');
    await newAgent().start(request, never);
    await until(() => readFileSync(request.logFile, 'utf8') === 'end\n');
  });

  it('gets of the environment what a VMM needs and what the request adds, and no secret', async () => {
    const request = { ...vmm('env'), env: { ADDED: 'yes' } };
    const options = {
      ...realSupervisorOptions(table),
      env: { PATH: '/usr/bin:/bin', EITRI_TOKEN: 'secret', NODE_OPTIONS: '--inspect' },
    };
    await new DetachedSupervisor(new SystemClock(), silent, facts, options).start(request, never);
    const text = await until(
      () => existsSync(request.logFile) && /ADDED=yes/.exec(readFileSync(request.logFile, 'utf8'))?.input,
    );
    expect(text).toContain('PATH=/usr/bin:/bin');
    expect(text).not.toMatch(/secret|inspect/);
  });

  it('twice at once is one process: the second start is refused', async () => {
    const agent = newAgent();
    const request = vmm(IDLE);
    const results = await Promise.allSettled([agent.start(request, never), agent.start(request, never)]);
    expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await pidsOf(request.identity.value)).toHaveLength(1);
  });

  it('with an aborted signal is not started, and one started before is not ended by it', async () => {
    const agent = newAgent();
    const request = vmm(IDLE);
    await expect(agent.start(request, AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
    expect(await pidsOf(request.identity.value)).toEqual([]);
    const controller = new AbortController();
    const { pid } = await agent.start(request, controller.signal);
    controller.abort();
    expect(await alive(pid)).toBe(true);
  });

  it('whose executable is not there is a permanent error that names it, and leaves nothing', async () => {
    const agent = newAgent();
    const request = vmm(IDLE, tempFolder(), '/no/such/vmm');
    const error = await failureOf(agent.start(request, never));
    expect(isPermanent(error)).toBe(true);
    expect(errorLine(error)).toContain('/no/such/vmm');
    expect(existsSync(request.pidFile)).toBe(false);
    expect(await observe(agent, request)).toEqual({ state: 'absent' });
  });

  it('without its identity among the arguments is refused: no later agent could find it', async () => {
    const request = { ...vmm(IDLE), args: ['-c', IDLE] };
    expect(isPermanent(await failureOf(newAgent().start(request, never)))).toBe(true);
  });

  it('where a link stands in the place of its log is refused, and the link’s target is untouched', async () => {
    const request = vmm('echo written');
    const target = join(tempFolder(), 'shadow');
    writeFileSync(target, 'theirs');
    symlinkSync(target, request.logFile);
    expect(errorLine(await failureOf(newAgent().start(request, never)))).toContain('a link stands there');
    expect(readFileSync(target, 'utf8')).toBe('theirs');
  });
});

describe('a process that ends', () => {
  it('is seen with its code, is told of once, and is forgotten when asked', async () => {
    const agent = newAgent();
    const request = vmm('exit 7');
    const told: string[] = [];
    agent.onExit((pidFile) => told.push(pidFile));
    await agent.start(request, never);
    await until(() => told.length > 0);
    expect(await observe(agent, request)).toEqual({ state: 'exited', code: 7 });
    await agent.forget(request);
    await agent.forget(request);
    expect(await observe(agent, request)).toEqual({ state: 'absent' });
    expect(existsSync(request.pidFile)).toBe(false);
    expect(told).toEqual([request.pidFile]);
  });

  it('by a signal is seen with the signal, and may be started again', async () => {
    const agent = newAgent();
    const request = vmm(IDLE);
    await agent.start(request, never);
    expect(await agent.signal(request, 'SIGKILL')).toBe('sent');
    expect(await agent.waitGone(request, 20_000, never)).toBe(true);
    expect(await observe(agent, request)).toEqual({ state: 'exited', signal: 'SIGKILL' });
    expect(await agent.signal(request, 'SIGKILL')).toBe('gone');
    const { pid } = await agent.start(request, never);
    expect(await observe(agent, request)).toEqual({ state: 'alive', pid });
  });

  it('at once is still recorded and seen with its code: many times over', async () => {
    const agent = newAgent();
    const folder = tempFolder();
    for (let i = 0; i < 20; i++) {
      const request = vmm('exit 3', folder);
      await agent.start(request, never);
      expect(await agent.waitGone(request, 20_000, never)).toBe(true);
      expect(await observe(agent, request)).toEqual({ state: 'exited', code: 3 });
    }
  });

  it('not, keeps waitGone until its time is over, and can not be forgotten', async () => {
    const agent = newAgent();
    const request = vmm('trap "" TERM; echo deaf; ' + IDLE);
    await agent.start(request, never);
    await until(() => readFileSync(request.logFile, 'utf8') === 'deaf\n');
    await agent.signal(request, 'SIGTERM');
    expect(await agent.waitGone(request, 300, never)).toBe(false);
    await expect(agent.forget(request)).rejects.toThrow('alive');
    expect(existsSync(request.pidFile)).toBe(true);
    const giveUp = new AbortController();
    const waiting = agent.waitGone(request, 60_000, giveUp.signal);
    giveUp.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });
});

describe('an agent that is killed', () => {
  it('leaves a chatty process running and writing, and the next agent finds, signals and outlives it', async () => {
    const request = vmm(CHATTY);
    const starter = await startElsewhere(request);
    const recorded = await until(() =>
      existsSync(request.pidFile) ? parsePidFile(readFileSync(request.pidFile, 'utf8')) : undefined,
    );
    process.kill(starter, 'SIGKILL');
    await until(async () => !(await alive(starter)));
    const size = statSync(request.logFile).size;
    await until(() => statSync(request.logFile).size > size + 100);

    const agent = newAgent();
    expect(await observe(agent, request)).toEqual({ state: 'alive', pid: recorded.pid });
    await expect(agent.start(request, never)).rejects.toThrow('alive already');
    expect(await agent.signal(request, 'SIGKILL')).toBe('sent');
    expect(await agent.waitGone(request, 20_000, never)).toBe(true);
    expect(await observe(agent, request)).toEqual({ state: 'exited' });
  });

  it('between spawn and pidfile leaves a process that the next one adopts, records, and never starts beside', async () => {
    const request = vmm(IDLE);
    const starter = await startElsewhere(request, 'die-unrecorded');
    await until(async () => !(await alive(starter)) && (await pidsOf(request.identity.value)).length === 1);
    expect(existsSync(request.pidFile)).toBe(false);
    const [pid] = await pidsOf(request.identity.value);

    await expect(newAgent().start(request, never)).rejects.toThrow('alive already');
    rmSync(request.pidFile, { force: true });
    expect(await observe(newAgent(), request)).toEqual({ state: 'alive', pid });
    expect(parsePidFile(readFileSync(request.pidFile, 'utf8'))?.pid).toBe(pid);
    expect(await pidsOf(request.identity.value)).toHaveLength(1);
  });
});

describe('a process that can not be recorded', () => {
  it('is ended and reaped before the start rejects', async () => {
    const folder = tempFolder();
    const request = { ...vmm('trap "" TERM; ' + IDLE, folder), pidFile: join(folder, 'missing', 'vmm.pid') };
    const agent = newAgent();
    const exits: string[] = [];
    agent.onExit((pidFile) => exits.push(pidFile));
    const error = await failureOf(agent.start(request, never));
    expect(errorLine(error)).toMatch(/record it in .*missing\/vmm\.pid.*ENOENT/);
    expect(exits).toEqual([request.pidFile]);
    expect(await pidsOf(request.identity.value)).toEqual([]);
    mkdirSync(join(folder, 'missing'));
    await agent.start(request, never);
    expect(await pidsOf(request.identity.value)).toHaveLength(1);
  });
});

describe('a pidfile', () => {
  it('of another boot, with the pid of a stranger, is nothing: the stranger is never signalled', async () => {
    const request = vmm(IDLE);
    const pid = stranger();
    writeFileSync(
      request.pidFile,
      formatPidFile({ pid, bootId: 'another boot', startTime: (await table.startTime(pid)) ?? '' }),
    );
    const agent = newAgent();
    expect(await observe(agent, request)).toEqual({ state: 'absent' });
    expect(await agent.signal(request, 'SIGKILL')).toBe('gone');
    await agent.forget(request);
    expect(await alive(pid)).toBe(true);
  });

  it('of this boot, whose pid was given to somebody else since, is nothing: the start goes on', async () => {
    const request = vmm(IDLE);
    const pid = stranger();
    writeFileSync(request.pidFile, formatPidFile({ pid, bootId: facts.bootId, startTime: '1' }));
    const agent = newAgent();
    expect(await agent.signal(request, 'SIGKILL')).toBe('gone');
    await agent.start(request, never);
    expect(await alive(pid)).toBe(true);
  });

  it('that fits a stranger in all but the command line is not believed and not overruled', async () => {
    const request = vmm(IDLE);
    const pid = stranger();
    writeFileSync(
      request.pidFile,
      formatPidFile({ pid, bootId: facts.bootId, startTime: (await table.startTime(pid)) ?? '' }),
    );
    const agent = newAgent();
    expect(await observe(agent, request)).toMatchObject({ state: 'unknown' });
    await expect(agent.signal(request, 'SIGKILL')).rejects.toThrow('SIGKILL');
    await expect(agent.start(request, never)).rejects.toThrow('by its start time');
    expect(await alive(pid)).toBe(true);
  });

  it.each([
    ['nothing', ''],
    ['an empty object', '{}'],
    ['NULs', '\0\0\0\0'],
    ['a number', '4711'],
    ['half an object', '{"pid":4711'],
    ['the pid of everybody', '{"pid":-1,"bootId":"b","startTime":"1"}'],
    ['far too much', 'x'.repeat(9000)],
  ])(
    'with %s in it is no evidence: the process is found by its command line and recorded anew',
    async (_what, garbage) => {
      const request = vmm(IDLE);
      const { pid } = await newAgent().start(request, never);
      writeFileSync(request.pidFile, garbage);
      expect(await observe(newAgent(), request)).toEqual({ state: 'alive', pid });
      expect(parsePidFile(readFileSync(request.pidFile, 'utf8'))?.pid).toBe(pid);
    },
  );
});

describe('finding a process without a pidfile', () => {
  it('takes nobody who only speaks of its socket: another place, a longer value, another program', async () => {
    const request = vmm(IDLE);
    const { option, value } = request.identity;
    const near = [
      ['-c', IDLE, 'sh', value],
      ['-c', IDLE, 'sh', option, `${value}x`],
      ['-c', IDLE, 'sh', `${option}=${value}`],
    ];
    for (const args of near) {
      const child = spawn(SHELL, args, { stdio: 'ignore' });
      onTestFinished(() => void child.kill('SIGKILL'));
    }
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', '--', option, value], {
      stdio: 'ignore',
    });
    onTestFinished(() => void other.kill('SIGKILL'));
    await until(
      async () => (await table.commandLines()).filter(({ argv }) => argv.some((a) => a.includes(value))).length === 4,
    );
    expect(await observe(newAgent(), request)).toEqual({ state: 'absent' });
  });

  it('knows a script behind its interpreter', async () => {
    const folder = tempFolder();
    const script = join(folder, 'fake-vmm');
    writeFileSync(script, `#!/bin/sh\n${IDLE}\n`, { mode: 0o755 });
    const request: StartRequest = { ...vmm('', folder, script), args: ['--api-socket', join(folder, 'api.sock')] };
    const { pid } = await newAgent().start(request, never);
    rmSync(request.pidFile);
    expect(await observe(newAgent(), request)).toEqual({ state: 'alive', pid });
  });

  it('knows a program whose file was replaced while it ran, and one that a link leads to', async () => {
    const folder = tempFolder();
    const program = join(folder, 'vmm');
    copyFileSync(SHELL, program);
    symlinkSync(program, join(folder, 'link'));
    const request = vmm(IDLE, folder, join(folder, 'link'));
    const { pid } = await newAgent().start(request, never);
    rmSync(request.pidFile);
    expect(await observe(newAgent(), request)).toEqual({ state: 'alive', pid });
    rmSync(request.pidFile);
    rmSync(program);
    copyFileSync(SHELL, program);
    expect(await observe(newAgent(), request)).toEqual({ state: 'alive', pid });
  });

  it('can not tell about a program of its name from another place, and starts nothing beside it', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'old'));
    mkdirSync(join(folder, 'new'));
    for (const version of ['old', 'new']) copyFileSync(SHELL, join(folder, version, 'vmm'));
    const before = vmm(IDLE, folder, join(folder, 'old', 'vmm'));
    await newAgent().start(before, never);
    rmSync(before.pidFile);
    const after = vmm(IDLE, folder, join(folder, 'new', 'vmm'));
    expect(await observe(newAgent(), after)).toMatchObject({ state: 'unknown' });
    await expect(newAgent().start(after, never)).rejects.toThrow('instead of');
    expect(await pidsOf(before.identity.value)).toHaveLength(1);
  });
});
