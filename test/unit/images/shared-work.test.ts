import { describe, expect, it } from 'vitest';
import { SharedWork } from '../../../src/images/shared-work.js';
import { calm } from '../../support/quiet.js';

interface Job {
  readonly signal: AbortSignal;
  readonly report: (n: number) => void;
  readonly end: (value: string) => void;
  readonly fail: (error: Error) => void;
}

function setUp() {
  const jobs: Job[] = [];
  const shared = new SharedWork<string, number>();
  const work = (signal: AbortSignal, report: (n: number) => void): Promise<string> =>
    new Promise((end, fail) => jobs.push({ signal, report, end, fail }));
  const run = (signal = calm(), listen: (n: number) => void = () => undefined) => shared.run('k', work, listen, signal);
  return { jobs, run };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const job = (jobs: readonly Job[], at: number): Job => {
  const found = jobs[at];
  if (found === undefined) throw new Error(`no work ${at}`);
  return found;
};

describe('work that many wait for', () => {
  it('runs once, and gives its result to all', async () => {
    const { jobs, run } = setUp();
    const all = Promise.all([run(), run(), run()]);
    await turn();
    expect(jobs).toHaveLength(1);
    job(jobs, 0).end('done');
    expect(await all).toEqual(['done', 'done', 'done']);
  });

  it('goes on when one leaves, who gets its own reason', async () => {
    const { jobs, run } = setUp();
    const leaver = new AbortController();
    const [left, stays] = [run(leaver.signal), run()];
    await turn();
    leaver.abort(new Error('mine'));
    await expect(left).rejects.toThrow('mine');
    expect(job(jobs, 0).signal.aborted).toBe(false);
    job(jobs, 0).end('done');
    expect(await stays).toBe('done');
  });

  it('is aborted when the last leaves', async () => {
    const { jobs, run } = setUp();
    const [a, b] = [new AbortController(), new AbortController()];
    const both = Promise.allSettled([run(a.signal), run(b.signal)]);
    await turn();
    a.abort();
    await turn();
    expect(job(jobs, 0).signal.aborted).toBe(false);
    b.abort();
    await both;
    expect(job(jobs, 0).signal.aborted).toBe(true);
  });

  it('never overlaps: who comes while it is aborting waits for its end and starts afresh', async () => {
    const { jobs, run } = setUp();
    const only = new AbortController();
    const first = run(only.signal);
    await turn();
    only.abort(new Error('gone'));
    await expect(first).rejects.toThrow('gone');
    const second = run();
    await turn();
    expect(jobs).toHaveLength(1);
    job(jobs, 0).fail(new Error('aborted'));
    await turn();
    expect(jobs).toHaveLength(2);
    job(jobs, 1).end('fresh');
    expect(await second).toBe('fresh');
  });

  it('keeps no failure: the next one tries again', async () => {
    const { jobs, run } = setUp();
    const first = run();
    await turn();
    job(jobs, 0).fail(new Error('broken'));
    await expect(first).rejects.toThrow('broken');
    const second = run();
    await turn();
    job(jobs, 1).end('whole');
    expect(await second).toBe('whole');
  });

  it('tells all of its progress, and late ones at once how far it is', async () => {
    const { jobs, run } = setUp();
    const early: number[] = [];
    const late: number[] = [];
    const first = run(calm(), (n) => early.push(n));
    await turn();
    job(jobs, 0).report(1);
    const second = run(calm(), (n) => late.push(n));
    job(jobs, 0).report(2);
    job(jobs, 0).end('done');
    await Promise.all([first, second]);
    expect({ early, late }).toEqual({ early: [1, 2], late: [1, 2] });
  });
});
