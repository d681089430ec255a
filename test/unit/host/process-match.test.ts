import { describe, expect, it } from 'vitest';
import { eldest, holdsPair, indexPairs, matchProcess, pairKey } from '../../../src/host/process-match.js';
import type { ProcessFacts } from '../../../src/host/process-table.js';

const VMM = '/usr/bin/vmm';
const identity = { executable: VMM, option: '--api-socket', value: '/run/x/api.sock' };
const program = { paths: [VMM, '/opt/vmm-52/vmm'], script: false };

const found = (changes: Partial<ProcessFacts> = {}): ProcessFacts => ({
  pid: 77,
  parentPid: 1,
  startTime: '1',
  executable: VMM,
  userId: 0,
  argv: ['vmm', '--api-socket', '/run/x/api.sock'],
  ...changes,
});

const kindOf = (
  changes: Partial<ProcessFacts>,
  known = program,
  ids: typeof identity & { userId?: number } = identity,
): string => matchProcess(found(changes), ids, known, 0).kind;

describe('a process is ours', () => {
  it.each([
    ['with program, user and pair', {}],
    ['where a link led to its program', { executable: '/opt/vmm-52/vmm' }],
  ])('%s', (_what, changes) => expect(kindOf(changes)).toBe('ours'));

  it('as a script behind its interpreter, and only if the program is a script', () => {
    const changes = { executable: '/usr/bin/node', argv: ['node', VMM, '--api-socket', '/run/x/api.sock'] };
    expect(kindOf(changes, { ...program, script: true })).toBe('ours');
    expect(kindOf(changes)).toBe('foreign');
  });

  it('under the user that was allotted to it, not under the agent’s', () => {
    expect(kindOf({ userId: 2000 }, program, { ...identity, userId: 2000 })).toBe('ours');
    expect(kindOf({ userId: 0 }, program, { ...identity, userId: 2000 })).toBe('foreign');
  });
});

describe('a process is foreign', () => {
  it.each<[string, Partial<ProcessFacts>]>([
    ['of another user', { userId: 1000 }],
    ['with another program', { executable: '/usr/bin/strace' }],
    ['with the value only', { argv: ['vmm', '/run/x/api.sock'] }],
    ['with the value under another option', { argv: ['vmm', '--event', '/run/x/api.sock'] }],
    ['with a longer value', { argv: ['vmm', '--api-socket', '/run/x/api.sock2'] }],
    ['that is called by the option', { argv: ['--api-socket', '/run/x/api.sock'] }],
  ])('%s', (_what, changes) => expect(kindOf(changes)).toBe('foreign'));
});

describe('a process is unclear', () => {
  it.each<[string, Partial<ProcessFacts>]>([
    ['when its program moved', { executable: '/opt/vmm-51/vmm' }],
    ['when its program is hidden and it calls itself so', { executable: undefined }],
    ['when its user is hidden', { userId: undefined }],
  ])('%s', (_what, changes) => expect(kindOf(changes)).toBe('unclear'));
});

it('the index finds exactly what a look at each command line finds', () => {
  const lines = [
    { pid: 1, argv: ['a', 'b', 'c', 'b', 'c'] },
    { pid: 2, argv: ['b', 'c'] },
    { pid: 3, argv: ['x', 'b', 'c'] },
  ];
  const index = indexPairs(lines);
  for (const option of ['a', 'b', 'c', 'x']) {
    for (const value of ['a', 'b', 'c']) {
      const expected = lines.filter(({ argv }) => holdsPair(argv, option, value)).map(({ pid }) => pid);
      expect(index.get(pairKey(option, value)) ?? []).toEqual(expected);
    }
  }
});

it('of a process and its forks the one that started them is taken', () => {
  const [parent, fork] = [found({ pid: 90 }), found({ pid: 80, parentPid: 90 })];
  expect(eldest([fork, parent])?.pid).toBe(90);
  expect(eldest([])).toBeUndefined();
});
