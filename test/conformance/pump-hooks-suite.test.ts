import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  FakeConsole,
  FaultyPumpHooks,
  ManualClock,
  pumpHooksCases,
  pumpHooksFaults,
  pumpHooksSuite,
  type PumpHooksContext,
  type PumpHooksFault,
} from '@eitri/conformance';
import type { ConsoleSource, VmUid } from '@eitri/core/contracts';
import type { PumpHooks } from '@eitri/core/contracts';
import { expectCaught } from '../support/caught.js';

interface Parts {
  readonly source: ConsoleSource;
  readonly clock: ManualClock;
}

function contextOf(make: (parts: Parts) => { hooks: PumpHooks; logged: (uid: VmUid) => Buffer }): PumpHooksContext {
  const clock = new ManualClock();
  const lines = new FakeConsole();
  const { hooks, logged } = make({ source: lines, clock });
  return {
    hooks,
    passTime: (ms) => clock.advance(ms),
    newGuest: () => {
      const uid = randomUUID() as VmUid;
      const line = lines.line(uid);
      return Promise.resolve({
        uid,
        powerOn: () => {
          line.powerOn();
          return Promise.resolve();
        },
        print: (bytes) => {
          line.print(bytes);
          return Promise.resolve();
        },
        reboot: () => {
          line.reboot();
          return Promise.resolve();
        },
        gone: () => {
          line.gone();
          return Promise.resolve();
        },
        clients: () => line.connected,
        mostClients: () => line.mostClients,
        cutOff: () => line.cutOff,
        logged: () => Promise.resolve(logged(uid)),
      });
    },
  };
}

function smallPump(fault: PumpHooksFault | undefined): PumpHooksContext {
  const logs = new Map<VmUid, Buffer[]>();
  return contextOf(({ source, clock }) => ({
    hooks: new FaultyPumpHooks(
      source,
      clock,
      (uid, chunk) => {
        logs.set(uid, [...(logs.get(uid) ?? []), chunk]);
      },
      fault,
    ),
    logged: (uid) => Buffer.concat(logs.get(uid) ?? []),
  }));
}

pumpHooksSuite('pump hooks: the smallest pump', () => smallPump(undefined));

/** Which cases each fault must make fail. */
const CAUGHT: Readonly<Record<PumpHooksFault, readonly string[]>> = {
  'waits for the line': ['the line is not there yet: ensure resolves, and what is printed once it is there is logged'],
  'rejects without a line': [
    'the line is not there yet: ensure resolves, and what is printed once it is there is logged',
  ],
  'starts a pump at each ensure': [
    'ensure is called ten times in a row and ten times at once: one client reads the line',
  ],
  'stops reading after a while': ['a guest prints much: all of it is read and logged, in order'],
  'rejects a stop of nothing': ['nothing was ever ensured: stop resolves, ten times in a row and at once'],
  'resolves stop at once': [
    'stop resolves: no client is left and all that was printed is in the log; stopping ten times more changes nothing',
  ],
  'closes with bytes unread': [
    'stop comes while output is on its way: it is read to the end of the stream before the socket is closed',
  ],
  'gives up at the end of the stream': [
    'the guest reboots three times: the line is found again each time, and nothing is logged twice',
  ],
  'logs history again': [
    'the guest reboots three times: the line is found again each time, and nothing is logged twice',
  ],
  'looks for the line after stop': ['the guest is stopped, and its line comes back: nobody connects'],
  'stops connected pumps only': [
    'stop comes while the pump looks for a line that is not there: it resolves, and nobody connects later',
  ],
  'pumps one boot only': ['the guest is stopped and started again, ten times: each boot is logged once'],
  'forgets an ensure during stop': [
    'ensure follows stop before that has resolved: the guest has one pump in the end, and never two',
  ],
  'starts over an old pump': [
    'ensure follows stop before that has resolved: the guest has one pump in the end, and never two',
  ],
  'stops everybody': ['one of two guests is stopped: the other one is read on'],
  'logs into one file': ['one of two guests is stopped: the other one is read on'],
};

describe('pump hooks suite', () => {
  for (const fault of pumpHooksFaults) {
    for (const name of CAUGHT[fault]) {
      it.concurrent(`a pump that ${fault}: "${name}" fails`, async () => {
        const found = pumpHooksCases.find((one) => one.name === name);
        if (found === undefined) throw new Error(`no case is called "${name}"`);
        await expectCaught(found, () => smallPump(fault));
      });
    }
  }

  it('has no case that no broken pump fails', () => {
    const caught = new Set(Object.values(CAUGHT).flat());
    expect(pumpHooksCases.map((one) => one.name).filter((name) => !caught.has(name))).toEqual([]);
  });
});
