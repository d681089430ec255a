import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Runner, RunRequest } from '@eitri/core/contracts';
import {
  parseArgv,
  parsePsHead,
  parseStat,
  ProcProcessTable,
  PsProcessTable,
} from '../../../src/host/process-table.js';
import { tempFolder } from '../../support/temp.js';

const statLine = (comm: string, state = 'S', start = '123456'): string =>
  `77 (${comm}) ${state} 42 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 ${start} 1000 20 18446744073709551615 0\n`;

describe('/proc/PID/stat', () => {
  it('gives parent and start time whatever the program calls itself', () => {
    const comm = fc.oneof(fc.string({ maxLength: 15 }), fc.constantFrom('a b', ') Z 1', '((', '))) R 1 2 3', '\n'));
    fc.assert(
      fc.property(comm, (name) => {
        expect(parseStat(statLine(name))).toEqual({ ended: false, parentPid: 42, startTime: '123456' });
      }),
    );
  });

  it('of a zombie says that it has ended, and what is cut says nothing', () => {
    expect(parseStat(statLine('x', 'Z'))?.ended).toBe(true);
    expect(parseStat(statLine('x').slice(0, 40))).toBeUndefined();
    expect(parseStat('')).toBeUndefined();
  });
});

it('a command line keeps empty arguments, also the last one', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string().filter((s) => !s.includes('\0')),
        { minLength: 1 },
      ),
      (argv) => {
        expect(parseArgv(argv.map((word) => `${word}\0`).join(''))).toEqual(argv);
      },
    ),
  );
  expect(parseArgv('')).toEqual([]);
});

describe('a process read from /proc', () => {
  function proc(state: string, exe = '/usr/bin/vmm (deleted)'): ProcProcessTable {
    const root = tempFolder();
    mkdirSync(join(root, '77'));
    mkdirSync(join(root, 'self'));
    mkdirSync(join(root, '78'));
    writeFileSync(join(root, '78', 'cmdline'), '');
    writeFileSync(join(root, '77', 'stat'), statLine('vmm', state));
    writeFileSync(join(root, '77', 'cmdline'), 'vmm\0--api-socket\0/x\0');
    writeFileSync(join(root, '77', 'status'), 'Name:\tvmm\nUid:\t1000\t1001\t1000\t1000\nGid:\t5\t5\t5\t5\n');
    symlinkSync(exe, join(root, '77', 'exe'));
    return new ProcProcessTable(root);
  }

  it('has the user it acts as, and its program’s path also after that was replaced', async () => {
    expect(await proc('S').inspect(77)).toEqual({
      pid: 77,
      parentPid: 42,
      startTime: '123456',
      executable: '/usr/bin/vmm',
      userId: 1001,
      argv: ['vmm', '--api-socket', '/x'],
    });
  });

  it('is gone when it is a zombie, and when it is not there', async () => {
    expect(await proc('Z').inspect(77)).toBeUndefined();
    expect(await proc('Z').startTime(77)).toBeUndefined();
    expect(await proc('S').inspect(79)).toBeUndefined();
  });

  it('is in the sweep if it has a command line', async () => {
    expect(await proc('S').commandLines()).toEqual([{ pid: 77, argv: ['vmm', '--api-socket', '/x'] }]);
  });

  it('in a /proc that can not be read is an error, not an empty list', async () => {
    await expect(new ProcProcessTable('/no/such/proc').commandLines()).rejects.toThrow('list processes');
  });
});

describe('a process told of by ps', () => {
  const HEAD = '    1   501 Ss   Mon Aug  3 10:00:01 2026    \n';
  /** Answers by the columns that are asked for. */
  function ps(answers: Readonly<Record<string, string>>): {
    readonly table: PsProcessTable;
    readonly asked: RunRequest[];
  } {
    const asked: RunRequest[] = [];
    const runner: Runner = {
      run: (request) => {
        asked.push(request);
        const columns = request.args[request.args.indexOf('-o') + 1] ?? '';
        const stdout = answers[columns] ?? '';
        return Promise.resolve({ exitCode: stdout === '' ? 1 : 0, stdout, stderr: '' });
      },
      which: () => Promise.resolve(undefined),
    };
    return { table: new PsProcessTable(runner), asked };
  }

  it('has its facts, and its start in a zone that never changes', async () => {
    const { table, asked } = ps({
      'ppid=,uid=,stat=,lstart=': HEAD,
      'comm=': '/opt/vfkit\n',
      'args=': '/opt/vfkit --restful-uri unix:///x\n',
    });
    expect(await table.inspect(77)).toEqual({
      pid: 77,
      parentPid: 1,
      userId: 501,
      startTime: 'Mon Aug 3 10:00:01 2026',
      executable: '/opt/vfkit',
      argv: ['/opt/vfkit', '--restful-uri', 'unix:///x'],
    });
    expect(asked.every((request) => request.env?.['TZ'] === 'UTC')).toBe(true);
  });

  it('is gone when ps has no line for it, and when it is a zombie', async () => {
    expect(await ps({}).table.startTime(77)).toBeUndefined();
    expect(parsePsHead(HEAD.replace('Ss', 'Z '))).toBeUndefined();
  });

  it('is in the sweep with its arguments', async () => {
    const { table } = ps({ 'pid=,args=': '    1 /sbin/launchd\n  77 /opt/vfkit --a b\n' });
    expect(await table.commandLines()).toEqual([
      { pid: 1, argv: ['/sbin/launchd'] },
      { pid: 77, argv: ['/opt/vfkit', '--a', 'b'] },
    ]);
  });
});
