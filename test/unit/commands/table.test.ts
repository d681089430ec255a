import type { VmSummaryView } from '@eitri/protocol';
import { describe, expect, it } from 'vitest';
import { issuesText } from '../../../src/commands/shared/issue-text.js';
import { fields } from '../../../src/commands/shared/table.js';
import { vmListText } from '../../../src/commands/shared/vm-text.js';
import { progressTo, type Goal } from '../../../src/commands/shared/wait.js';

const vm = (changes: Partial<VmSummaryView> = {}): VmSummaryView => ({
  uid: '00000000-0000-4000-8000-000000000001',
  id: 'web-1',
  phase: 'Running',
  wanted: 'running',
  cpus: 2,
  memoryMib: 2048,
  diskGib: 20,
  address: '10.77.1.5',
  boots: 1,
  hostKeys: [],
  ports: [],
  labels: {},
  ...changes,
});

const published = {
  exposure: { hostAddress: '0.0.0.0', hostPort: 8080, guestPort: 80, protocol: 'tcp' },
  state: 'published',
} as const;

describe('a list of VMs', () => {
  it('is aligned, and says of each what a person must know', () => {
    const text = vmListText(
      [
        vm({ ports: [published] }),
        vm({ id: 'db', phase: 'Running', wanted: 'stopped', memoryMib: 512 }),
        vm({ id: 'old', phase: 'Shelved', wanted: 'deleted', reason: 'ShelvedTombstoned' }),
      ],
      undefined,
    );
    expect(text).toBe(
      [
        'NAME   STATE             CPUS   MEMORY    DISK  ADDRESS    NOTE',
        'web-1  Running              2    2 GiB  20 GiB  10.77.1.5  8080->80',
        'db     Running, to stop     2  512 MiB  20 GiB  10.77.1.5',
        'old    Shelved, deleted     2    2 GiB  20 GiB  10.77.1.5  ShelvedTombstoned',
        '',
      ].join('\n'),
    );
  });

  it('at a terminal: fits, by cutting notes first and then names', () => {
    const long = vm({
      id: 'a-name-of-some-length-that-is-still-fine',
      phase: 'Failed',
      reason: 'ImageNotFound',
      message: 'image https://example.org/very/long/path.qcow2: 404',
    });
    for (const line of vmListText([long], 80).trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(vmListText([long], undefined)).toContain('404');
  });

  it('without any: says so', () => {
    expect(vmListText([], 80)).toBe('no VMs\n');
  });

  it('with what a guest said in it: steers no terminal', () => {
    expect(fields([['message', 'a\u001b[31mb\nc', 'sentence']], 80)).toBe('message  a [31mb c\n');
  });
});

describe('names and values', () => {
  it('at a narrow terminal: sentences go on below their beginning, and a path stays whole', () => {
    const path = '/srv/a folder/with  blanks/that is longer than this terminal';
    const rows = [
      ['state', path],
      ['note', 'a guest is reached through its ports only', 'sentence'],
      ['pid', undefined],
    ] as const;
    expect(fields(rows, 30)).toBe(
      [`state  ${path}`, 'note   a guest is reached', '       through its ports only', ''].join('\n'),
    );
  });
});

describe('what was declared and can not be done', () => {
  const issue = {
    source: 'x.yaml',
    line: 3,
    field: 'metadata.name',
    message: `"../x" is not a name: ${'word '.repeat(20)}`,
  };

  it('at a terminal: is broken at its width, and each begins a line of its own', () => {
    const lines = issuesText([issue, { source: 'vms', message: 'gone' }], 40)
      .trimEnd()
      .split('\n');
    expect(lines.filter((line) => /^ {2}\S/.test(line))).toEqual([
      '  x.yaml:3: metadata.name: "../x" is not',
      '  vms: gone',
    ]);
    for (const line of lines.slice(1)) expect(line.length).toBeLessThanOrEqual(40);
  });

  it('when all can be done: says nothing', () => {
    expect(issuesText([], 80)).toBe('');
  });
});

describe('waiting for a VM', () => {
  const table: readonly (readonly [Goal, Partial<VmSummaryView> | undefined, string])[] = [
    ['running', { phase: 'Running' }, 'reached'],
    ['running', { phase: 'Creating' }, 'going'],
    ['running', { phase: 'Failed', reason: 'ImageNotFound' }, 'failed'],
    // What failed under the declaration before is no answer to this one.
    ['running', { phase: 'Failed', wanted: 'stopped' }, 'going'],
    ['running', undefined, 'going'],
    ['stopped', { phase: 'Stopped', wanted: 'stopped' }, 'reached'],
    ['stopped', { phase: 'Stopping', wanted: 'stopped', pid: 7 }, 'going'],
    ['stopped', { phase: 'Failed', wanted: 'stopped' }, 'reached'],
    ['stopped', { phase: 'Stopped', wanted: 'running' }, 'going'],
    ['deleted', { phase: 'Shelved', wanted: 'deleted' }, 'reached'],
    ['deleted', { phase: 'Shelved', wanted: 'deleted', pid: 7 }, 'going'],
    ['deleted', { phase: 'Stopping', wanted: 'deleted', pid: 7 }, 'going'],
    ['deleted', undefined, 'reached'],
  ];

  it.each(table)('to be %s, seen as %o: %s', (goal, seen, kind) => {
    expect(progressTo(goal, seen === undefined ? undefined : vm(seen)).kind).toBe(kind);
  });
});
