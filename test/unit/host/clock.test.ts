import { afterEach, describe, expect, it, vi } from 'vitest';
import { SystemClock, SystemRandom } from '../../../src/host/clock.js';

describe('sleeping on the real clock', () => {
  afterEach(() => vi.useRealTimers());

  it('rejects with the reason of the signal, at once when it was aborted before', async () => {
    const clock = new SystemClock();
    const reason = new Error('enough');
    await expect(clock.sleep(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    const sleeping = clock.sleep(60_000, controller.signal);
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
  });

  it('for longer than a timer can hold does not end at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let awake = false;
    const sleeping = new SystemClock().sleep(2 ** 31 + 5_000, new AbortController().signal).then(() => {
      awake = true;
    });
    await vi.advanceTimersByTimeAsync(2 ** 31);
    expect(awake).toBe(false);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(awake).toBe(true);
    await sleeping;
  });

  it('leaves no listener on the signal behind', async () => {
    const controller = new AbortController();
    const remove = vi.spyOn(controller.signal, 'removeEventListener');
    await new SystemClock().sleep(0, controller.signal);
    expect(remove).toHaveBeenCalledOnce();
  });
});

it('random gives a version 4 UUID and a fraction below one', () => {
  const random = new SystemRandom();
  expect(random.uuid()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(random.fraction()).toBeLessThan(1);
});
