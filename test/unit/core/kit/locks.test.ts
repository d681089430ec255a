import { describe, expect, it } from 'vitest';
import { detach, KeyedMutex, linkAbort, orAborted, Semaphore } from '@eitri/core/kit';
import { silent } from '../../../support/quiet.js';

describe('a semaphore', () => {
  it('lets so many in, serves waiters in their order, and forgets one that leaves', async () => {
    const gate = new Semaphore(2);
    const order: string[] = [];
    const first = await gate.acquire();
    const second = await gate.acquire();
    expect(gate.full).toBe(true);
    const leaving = new AbortController();
    const third = gate.acquire().then((release) => {
      order.push('third');
      return release;
    });
    const fourth = gate.acquire(leaving.signal);
    const fifth = gate.acquire().then((release) => {
      order.push('fifth');
      return release;
    });
    leaving.abort(new Error('left'));
    await expect(fourth).rejects.toThrow('left');
    first();
    first(); // releasing twice lets nobody else in
    (await third)();
    second();
    await fifth;
    expect(order).toEqual(['third', 'fifth']);
  });

  it('with 0 permits bounds nothing', async () => {
    const gate = new Semaphore(0);
    await Promise.all(Array.from({ length: 50 }, () => gate.acquire()));
    expect(gate.full).toBe(false);
  });

  it('refuses an aborted signal at once', async () => {
    await expect(new Semaphore(1).acquire(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  });
});

describe('a keyed mutex', () => {
  it('makes work on one key serial, and runs other keys beside it', async () => {
    const mutex = new KeyedMutex();
    let inA = 0;
    let most = 0;
    const log: string[] = [];
    const work = (key: string) =>
      mutex.run(key, async () => {
        if (key === 'a') most = Math.max(most, ++inA);
        await Promise.resolve();
        log.push(key);
        if (key === 'a') inA--;
      });
    await Promise.all([work('a'), work('a'), work('b'), work('a')]);
    expect(most).toBe(1);
    expect(log.filter((key) => key === 'a')).toHaveLength(3);
    expect(log.indexOf('b')).toBeLessThan(3);
  });

  it('is free again after work that throws', async () => {
    const mutex = new KeyedMutex();
    await expect(mutex.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(mutex.run('a', () => Promise.resolve('yes'))).resolves.toBe('yes');
  });
});

describe('an abort', () => {
  it('is handed down a link, also when it came first, and not after the link is undone', () => {
    const parent = new AbortController();
    const child = new AbortController();
    const undone = new AbortController();
    linkAbort(parent.signal, child);
    linkAbort(parent.signal, undone)();
    parent.abort(new Error('down'));
    expect(child.signal.reason).toEqual(new Error('down'));
    expect(undone.signal.aborted).toBe(false);
    const late = new AbortController();
    linkAbort(parent.signal, late);
    expect(late.signal.aborted).toBe(true);
  });

  it('ends the wait for work that does not listen', async () => {
    const abort = new AbortController();
    const waiting = orAborted(new Promise(() => undefined), abort.signal);
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(orAborted(Promise.resolve(1), new AbortController().signal)).resolves.toBe(1);
  });
});

describe('detached work', () => {
  it('logs what it rejects with, once', async () => {
    const lines: string[] = [];
    detach(Promise.reject(new Error('lost')), { ...silent, error: (event) => lines.push(event) }, 'work.failed');
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines).toEqual(['work.failed']);
  });
});
