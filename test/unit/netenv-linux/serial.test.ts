import { describe, expect, it } from 'vitest';
import { Gathered, Serial } from '../../../plugins/netenv-linux/src/serial.js';

const fulfilled = (value: string): PromiseSettledResult<string> => ({ status: 'fulfilled', value });

/** A serial that is busy until it is let go. */
function busy(): { readonly serial: Serial; readonly letGo: () => void } {
  const serial = new Serial();
  let letGo = (): void => undefined;
  serial.run(() => new Promise<void>((resolve) => (letGo = resolve))).catch(() => undefined);
  return { serial, letGo: () => letGo() };
}

describe('several ask while the serial is busy', () => {
  it('their turn comes: they are handed over together, in order, and each is answered by its own', async () => {
    const { serial, letGo } = busy();
    const seen: (readonly string[])[] = [];
    const gathered = new Gathered<string, string>(serial, 10, (items) => {
      seen.push(items);
      return Promise.resolve(
        items.map((item) =>
          item === 'b' ? { status: 'rejected', reason: new Error('not b') } : fulfilled(item.toUpperCase()),
        ),
      );
    });
    const asked = Promise.allSettled(['a', 'b', 'c'].map((item) => gathered.run(item)));
    await Promise.resolve();
    letGo();
    expect(await asked).toEqual([fulfilled('A'), { status: 'rejected', reason: new Error('not b') }, fulfilled('C')]);
    expect(seen).toEqual([['a', 'b', 'c']]);
  });

  it('they are more than fit: the rest is handed over next, behind who asked for the serial meanwhile', async () => {
    const { serial, letGo } = busy();
    const order: string[] = [];
    const gathered = new Gathered<string, string>(serial, 2, (items) => {
      order.push(items.join(''));
      return Promise.resolve(items.map(fulfilled));
    });
    const asked = Promise.all(['a', 'b', 'c'].map((item) => gathered.run(item)));
    const other = serial.run(() => Promise.resolve(order.push('other')));
    await Promise.resolve();
    letGo();
    expect(await asked).toEqual(['a', 'b', 'c']);
    await other;
    expect(order).toEqual(['ab', 'other', 'c']);
  });

  it('the work breaks: all of them hear it, and who asks then is served', async () => {
    const { serial, letGo } = busy();
    let broken = true;
    const gathered = new Gathered<string, string>(serial, 10, (items) =>
      broken ? Promise.reject(new Error('broken')) : Promise.resolve(items.map(fulfilled)),
    );
    const asked = Promise.allSettled(['a', 'b'].map((item) => gathered.run(item)));
    await Promise.resolve();
    letGo();
    expect((await asked).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    broken = false;
    expect(await gathered.run('c')).toBe('c');
  });
});

it('one asks while the work is under way: it is handed over in a run that began after it had asked', async () => {
  const serial = new Serial();
  const seen: (readonly string[])[] = [];
  let late: Promise<string> | undefined;
  const gathered = new Gathered<string, string>(serial, 10, (items): Promise<PromiseSettledResult<string>[]> => {
    seen.push(items);
    late ??= gathered.run('late');
    return Promise.resolve(items.map(fulfilled));
  });
  await gathered.run('first');
  expect(await late).toBe('late');
  expect(seen).toEqual([['first'], ['late']]);
});
