/** What a real kernel can't be made to do here: refuse, hide, give a pid to somebody else between two looks. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '@eitri/conformance';
import type { HostFacts, ProcessRef, ProcessSignal, ProcessState } from '@eitri/core/contracts';
import { PinoLogger } from '../../../src/host/log.js';
import { formatPidFile, parsePidFile } from '../../../src/host/pid-file.js';
import type { CommandLine, ProcessFacts, ProcessTable } from '../../../src/host/process-table.js';
import { DetachedSupervisor } from '../../../src/host/supervisor.js';
import { tempFolder } from '../../support/temp.js';

const never = new AbortController().signal;
const facts: HostFacts = {
  os: 'linux',
  arch: 'x64',
  bootId: 'boot-2',
  hostname: 'h',
  root: false,
  cpus: 1,
  memoryMib: 1,
};

/** A machine of our own: processes that are listed, and a kernel that answers as it is told. */
class FakeMachine implements ProcessTable {
  readonly processes = new Map<number, ProcessFacts>();
  readonly signalled: [number, ProcessSignal | 0][] = [];
  readonly refusing = new Set<number>();
  sweeps = 0;
  startTimesRead = 0;
  unreadable = false;

  readonly inspect = (pid: number): Promise<ProcessFacts | undefined> => Promise.resolve(this.processes.get(pid));
  readonly startTime = (pid: number): Promise<string | undefined> => {
    this.startTimesRead++;
    return Promise.resolve(this.processes.get(pid)?.startTime);
  };
  readonly commandLines = (): Promise<readonly CommandLine[]> => {
    this.sweeps++;
    if (this.unreadable) return Promise.reject(new Error('no /proc'));
    return Promise.resolve([...this.processes.values()].map(({ pid, argv }) => ({ pid, argv })));
  };
  readonly signalProcess = (pid: number, name: ProcessSignal | 0): void => {
    if (this.refusing.has(pid)) throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
    if (!this.processes.has(pid)) throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' });
    if (name !== 0) this.signalled.push([pid, name]);
  };
}

class Scene {
  readonly machine = new FakeMachine();
  readonly clock = new ManualClock();
  readonly folder = tempFolder();
  readonly agent = new DetachedSupervisor(this.clock, PinoLogger.to({ write: () => undefined }, 'error'), facts, {
    table: this.machine,
    signalProcess: this.machine.signalProcess,
    userId: 0,
    env: {},
  });

  ref(name = 'a'): ProcessRef {
    return {
      pidFile: join(this.folder, `${name}.pid`),
      identity: { executable: '/usr/bin/vmm', option: '-s', value: `/run/${name}` },
    };
  }

  runs(pid: number, startTime = '100', name = 'a'): void {
    const argv = ['vmm', '-s', `/run/${name}`];
    this.machine.processes.set(pid, { pid, parentPid: 1, startTime, executable: '/usr/bin/vmm', userId: 0, argv });
  }

  record(pid: number, startTime = '100', bootId = 'boot-2'): void {
    writeFileSync(this.ref().pidFile, formatPidFile({ pid, bootId, startTime }));
  }

  look(): Promise<ProcessState> {
    return this.agent.observe(this.ref(), never);
  }
}

describe('a kernel that refuses', () => {
  it('to signal the process of a valid pidfile: it is there, unknown, and neither signalled nor forgotten nor doubled', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.record(50);
    scene.machine.refusing.add(50);
    expect(await scene.look()).toMatchObject({ state: 'unknown', why: expect.stringContaining('50') as string });
    await expect(scene.agent.signal(scene.ref(), 'SIGKILL')).rejects.toThrow('may not signal');
    await expect(scene.agent.forget(scene.ref())).rejects.toThrow('may not signal');
    const request = { ...scene.ref(), args: ['-s', '/run/a'], logFile: join(scene.folder, 'log') };
    await expect(scene.agent.start(request, never)).rejects.toThrow('may not signal');
    expect(await scene.agent.waitGone(scene.ref(), 0, never)).toBe(false);
    expect(existsSync(scene.ref().pidFile)).toBe(true);
  });

  it('to signal a stranger who has the pid of an old pidfile: nothing of ours is there, and a start may go on', async () => {
    for (const [startTime, bootId] of [
      ['100', 'boot-1'],
      ['99', 'boot-2'],
    ] as const) {
      const scene = new Scene();
      scene.runs(50, '100', 'other');
      scene.machine.refusing.add(50);
      scene.record(50, startTime, bootId);
      expect(await scene.look()).toEqual({ state: 'absent' });
      expect(await scene.agent.signal(scene.ref(), 'SIGKILL')).toBe('gone');
    }
  });

  it('to signal one that only its command line names: it is present and untouchable', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.machine.refusing.add(50);
    expect(await scene.look()).toMatchObject({ state: 'unknown' });
    expect(existsSync(scene.ref().pidFile)).toBe(false);
  });

  it('only the kill itself: the refusal is an error, and the process stays known', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.record(50);
    const agent = new DetachedSupervisor(scene.clock, PinoLogger.to({ write: () => undefined }, 'error'), facts, {
      table: scene.machine,
      userId: 0,
      env: {},
      signalProcess: (_pid, name) => {
        if (name !== 0) throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
      },
    });
    await expect(agent.signal(scene.ref(), 'SIGKILL')).rejects.toThrow('may live on');
    expect(await agent.observe(scene.ref(), never)).toEqual({ state: 'alive', pid: 50 });
  });
});

describe('an adopted process', () => {
  it('whose pid was given away is never signalled, however short ago it was seen', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.record(50);
    expect(await scene.look()).toEqual({ state: 'alive', pid: 50 });
    scene.runs(50, '200', 'other');
    expect(await scene.agent.signal(scene.ref(), 'SIGKILL')).toBe('gone');
    expect(scene.machine.signalled).toEqual([]);
    expect(await scene.look()).toEqual({ state: 'exited' });
  });

  it('is asked for its start time now and then, not at each look', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.record(50);
    await scene.look();
    const before = scene.machine.startTimesRead;
    for (let i = 0; i < 50; i++) await scene.look();
    expect(scene.machine.startTimesRead).toBe(before);
    scene.runs(50, '200', 'other');
    await scene.clock.advance(10_000);
    expect(await scene.look()).toEqual({ state: 'exited' });
  });

  it('is gone as soon as the kernel does not know it', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.record(50);
    await scene.look();
    scene.machine.processes.clear();
    expect(await scene.look()).toEqual({ state: 'exited' });
    await scene.agent.forget(scene.ref());
    expect(await scene.look()).toEqual({ state: 'absent' });
  });

  it('wakes who waits for its end, and waits no longer than it may', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.record(50);
    const short = scene.agent.waitGone(scene.ref(), 250, never);
    await scene.clock.advance(300);
    expect(await short).toBe(false);
    const long = scene.agent.waitGone(scene.ref(), 60_000, never);
    await scene.clock.advance(1_000);
    scene.machine.processes.clear();
    await scene.clock.advance(100);
    expect(await long).toBe(true);
  });

  it('of which there are two is first the elder, and then, that one gone and forgotten, the other', async () => {
    const scene = new Scene();
    scene.runs(50);
    scene.runs(60);
    expect(await scene.look()).toEqual({ state: 'alive', pid: 50 });
    scene.machine.processes.delete(50);
    expect(await scene.look()).toEqual({ state: 'exited' });
    await scene.agent.forget(scene.ref());
    expect(await scene.look()).toEqual({ state: 'alive', pid: 60 });
    expect(parsePidFile(readFileSync(scene.ref().pidFile, 'utf8'))?.pid).toBe(60);
  });

  it('that can not be recorded is alive all the same', async () => {
    const scene = new Scene();
    scene.runs(50);
    mkdirSync(scene.ref().pidFile);
    expect(await scene.look()).toEqual({ state: 'alive', pid: 50 });
  });
});

describe('the sweep over all processes', () => {
  it('is one for many that have no pidfile, and none for those that have', async () => {
    const scene = new Scene();
    await Promise.all(Array.from({ length: 100 }, (_, i) => scene.agent.observe(scene.ref(`vm${i}`), never)));
    expect(scene.machine.sweeps).toBe(1);
    scene.runs(50);
    scene.record(50);
    await scene.clock.advance(60_000);
    for (let i = 0; i < 10; i++) await scene.look();
    expect(scene.machine.sweeps).toBe(1);
  });

  it('is made anew soon: what began since is found', async () => {
    const scene = new Scene();
    expect(await scene.look()).toEqual({ state: 'absent' });
    scene.runs(50);
    await scene.clock.advance(1_001);
    expect(await scene.look()).toEqual({ state: 'alive', pid: 50 });
  });

  it('that fails makes nothing absent, and is tried again at the next look', async () => {
    const scene = new Scene();
    scene.machine.unreadable = true;
    expect(await scene.look()).toMatchObject({ state: 'unknown', why: expect.stringContaining('no /proc') as string });
    await expect(scene.agent.forget(scene.ref())).rejects.toThrow('no /proc');
    scene.machine.unreadable = false;
    expect(await scene.look()).toEqual({ state: 'absent' });
  });
});

it('a pidfile that the system will not show makes nothing absent', async () => {
  const scene = new Scene();
  writeFileSync(join(scene.folder, 'file'), '');
  const ref = { ...scene.ref(), pidFile: join(scene.folder, 'file', 'a.pid') };
  expect(await scene.agent.observe(ref, never)).toMatchObject({ state: 'unknown' });
});
