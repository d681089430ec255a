/**
 * What every `PumpHooks` promises, tried over guests whose end of the line, and whose count of clients, are in the
 * suite's hands.
 *
 * Run it from a test file: `pumpHooksSuite('pump hooks: mine', makeContext)`. A case runs by itself with `runCase`.
 */
import { strict as assert } from 'node:assert';
import type { PumpHooks, VmUid } from '@eitri/core/contracts';
import { KIB } from '@eitri/core/kit';
import { eventually, within } from './patience.js';
import { registerSuite, type SuiteCase, type SuiteOptions } from './suite.js';

/** A guest whose VMM serves one serial line, and counts who reads it. */
export interface PumpedGuest {
  readonly uid: VmUid;
  /** The VMM starts, and with it the line. */
  readonly powerOn: () => Promise<void>;
  readonly print: (bytes: Uint8Array) => Promise<void>;
  /** The line closes and is there again. */
  readonly reboot: () => Promise<void>;
  readonly gone: () => Promise<void>;
  /** Clients that are connected now, and the most that ever were at once. */
  readonly clients: () => number;
  readonly mostClients: () => number;
  /** Clients that closed with bytes unread. */
  readonly cutOff: () => number;
  /** What the pump has written to the guest's log, the agent's own lines included. */
  readonly logged: () => Promise<Uint8Array>;
}

/** What one case of the suite is given: the hooks under test, and guests to try them on. */
export interface PumpHooksContext {
  readonly hooks: PumpHooks;
  /** A guest of its own, off, at each call. */
  readonly newGuest: () => Promise<PumpedGuest>;
  /** Lets this much time pass for the pump, on whatever clock it lives by. */
  readonly passTime: (ms: number) => Promise<void>;
}

const IDEMPOTENT = 'Idempotent: while one runs, nothing happens';
const ONE_PUMP = "Makes sure that one pump reads this guest's console";
const REGISTERED =
  "Resolves once the pump is registered, not once it is connected: the console's socket may come later. Rejects only on a bug";
const DRAINS = 'what the socket still holds is read to its end (bounded), then it lets go';
const STOP_ALWAYS = 'Idempotent, also when none ever ran';
const STOP_DONE = 'Resolves when the socket is closed and the log is written';
const ENDS = 'Ends the pump';

const ROUNDS = 10;
const TEN = Array.from({ length: ROUNDS }, (_, i) => i + 1);
/** Time in which a pump that looks for its line has found it. */
const LONG_MS = 3000;
const STEP_MS = 50;

/** Every promise of `PumpHooks` as a case; `pumpHooksSuite` registers them. */
export const pumpHooksCases: readonly SuiteCase<PumpHooksContext>[] = [
  {
    name: 'the line is not there yet: ensure resolves, and what is printed once it is there is logged',
    promise: REGISTERED,
    run: async (context) => {
      const guest = await context.newGuest();
      await within(context.hooks.ensure(guest.uid), 'ensure resolves before the line is there');
      await context.passTime(STEP_MS);
      await guest.powerOn();
      await connected(context, guest);
      await printedIsLogged(context, guest, 'first words.');
      await stopped(context, guest);
    },
  },
  {
    name: 'ensure is called ten times in a row and ten times at once: one client reads the line',
    promise: IDEMPOTENT,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      for (let round = 0; round < ROUNDS; round++) await ensured(context, guest);
      await connected(context, guest);
      await Promise.all(TEN.map(() => ensured(context, guest)));
      await context.passTime(LONG_MS);
      await printedIsLogged(context, guest, 'said once.');
      assert.equal(guest.mostClients(), 1, `${guest.mostClients()} clients were connected at once`);
      await stopped(context, guest);
      assert.equal(await timesLogged(guest, 'said once.'), 1, 'said once, logged more often');
    },
  },
  {
    name: 'a guest prints much: all of it is read and logged, in order',
    promise: ONE_PUMP,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      await ensured(context, guest);
      await connected(context, guest);
      const printed = Buffer.from(Array.from({ length: 4000 }, (_, i) => `line ${i}\n`).join(''));
      for (let at = 0; at < printed.length; at += 1000) await guest.print(printed.subarray(at, at + 1000));
      await logHolds(context, guest, printed.toString());
      await stopped(context, guest);
    },
  },
  {
    name: 'nothing was ever ensured: stop resolves, ten times in a row and at once',
    promise: STOP_ALWAYS,
    run: async (context) => {
      const guest = await context.newGuest();
      for (let round = 0; round < ROUNDS; round++) await stopped(context, guest);
      await Promise.all(TEN.map(() => stopped(context, guest)));
    },
  },
  {
    name: 'stop resolves: no client is left and all that was printed is in the log; stopping ten times more changes nothing',
    promise: STOP_DONE,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      await ensured(context, guest);
      await connected(context, guest);
      const printed = 'x'.repeat(64 * KIB);
      await guest.print(Buffer.from(printed));
      // Looked at in the moment in which stop resolves: a little later a careless pump has let go as well.
      let clients = guest.clients();
      let logged = Promise.resolve('');
      await stopped(context, guest, () => {
        clients = guest.clients();
        logged = logText(guest);
      });
      assert.equal(clients, 0, 'stop resolved, and somebody still reads the line');
      assert.ok((await logged).includes(printed), 'stop resolved, and the log lacks what was printed before');
      const before = await logText(guest);
      for (let round = 0; round < ROUNDS; round++) await stopped(context, guest);
      assert.equal(await logText(guest), before, 'stopping again changed the log');
    },
  },
  {
    name: 'stop comes while output is on its way: it is read to the end of the stream before the socket is closed',
    promise: DRAINS,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      await ensured(context, guest);
      await connected(context, guest);
      await guest.print(Buffer.alloc(128 * KIB, 'y'));
      await stopped(context, guest);
      assert.equal(guest.cutOff(), 0, 'the socket was closed with bytes unread, which resets it');
    },
  },
  {
    name: 'the guest reboots three times: the line is found again each time, and nothing is logged twice',
    promise: ONE_PUMP,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      await ensured(context, guest);
      await connected(context, guest);
      const words = ['boot one.', 'boot two.', 'boot three.', 'boot four.'];
      for (const [at, word] of words.entries()) {
        if (at > 0) {
          await guest.reboot();
          await context.passTime(STEP_MS);
          await connected(context, guest);
        }
        await printedIsLogged(context, guest, word);
      }
      await stopped(context, guest);
      for (const word of words) {
        assert.equal(await timesLogged(guest, word), 1, `"${word}" was printed once, and is not in the log once`);
      }
    },
  },
  {
    name: 'the guest is stopped, and its line comes back: nobody connects',
    promise: ENDS,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      await ensured(context, guest);
      await connected(context, guest);
      await stopped(context, guest);
      await guest.reboot();
      await context.passTime(LONG_MS);
      assert.equal(guest.clients(), 0, 'a stopped pump connected again');
    },
  },
  {
    name: 'stop comes while the pump looks for a line that is not there: it resolves, and nobody connects later',
    promise: ENDS,
    run: async (context) => {
      const guest = await context.newGuest();
      await ensured(context, guest);
      await context.passTime(STEP_MS);
      await stopped(context, guest);
      await guest.powerOn();
      await context.passTime(LONG_MS);
      assert.equal(guest.clients(), 0, 'a stopped pump found its line');
    },
  },
  {
    name: 'the guest is stopped and started again, ten times: each boot is logged once',
    promise: ONE_PUMP,
    run: async (context) => {
      const guest = await context.newGuest();
      for (const round of TEN) {
        await guest.powerOn();
        await ensured(context, guest);
        await connected(context, guest);
        await printedIsLogged(context, guest, `boot number ${round}.`);
        await guest.gone();
        await stopped(context, guest);
      }
      for (const round of TEN) {
        assert.equal(await timesLogged(guest, `boot number ${round}.`), 1, `boot ${round} is not in the log once`);
      }
    },
  },
  {
    name: 'ensure follows stop before that has resolved: the guest has one pump in the end, and never two',
    promise: ONE_PUMP,
    run: async (context) => {
      const guest = await context.newGuest();
      await guest.powerOn();
      await ensured(context, guest);
      await connected(context, guest);
      await guest.print(Buffer.alloc(64 * KIB, 'z'));
      await Promise.all([stopped(context, guest), ensured(context, guest)]);
      await connected(context, guest);
      await printedIsLogged(context, guest, 'after both.');
      assert.equal(guest.mostClients(), 1, 'the new pump connected before the old one had let go');
      await stopped(context, guest);
    },
  },
  {
    name: 'one of two guests is stopped: the other one is read on',
    promise: ENDS,
    run: async (context) => {
      const guests = [await context.newGuest(), await context.newGuest()] as const;
      for (const guest of guests) {
        await guest.powerOn();
        await ensured(context, guest);
        await connected(context, guest);
      }
      await stopped(context, guests[0]);
      assert.equal(guests[1].clients(), 1, 'the pump of another guest was ended');
      await printedIsLogged(context, guests[1], 'still here.');
      assert.equal(await timesLogged(guests[0], 'still here.'), 0, "one guest's output is in another one's log");
      await stopped(context, guests[1]);
    },
  },
];

/** Registers the suite in the vitest that is collecting. */
export function pumpHooksSuite<C extends PumpHooksContext>(
  name: string,
  makeContext: () => C | Promise<C>,
  options: SuiteOptions<C> = {},
): void {
  registerSuite<C>(name, pumpHooksCases, makeContext, options);
}

const ensured = (context: PumpHooksContext, guest: PumpedGuest): Promise<void> =>
  within(context.hooks.ensure(guest.uid), 'ensure resolves');

/** A stop may need time to pass: its drain is bounded on the pump's clock. */
async function stopped(
  context: PumpHooksContext,
  guest: PumpedGuest,
  onResolved: () => void = () => undefined,
): Promise<void> {
  let over = false;
  const stop = context.hooks
    .stop(guest.uid)
    .then(onResolved)
    .finally(() => (over = true));
  // Handled here too: the level below is asked before the rejection is awaited.
  stop.catch(() => undefined);
  await eventually(
    () => over,
    () => context.passTime(STEP_MS),
    () => 'stop resolves',
  );
  await stop;
}

async function connected(context: PumpHooksContext, guest: PumpedGuest): Promise<void> {
  await eventually(
    () => guest.clients() === 1,
    () => context.passTime(STEP_MS),
    () => `one client is connected, there are ${guest.clients()}`,
  );
}

async function printedIsLogged(context: PumpHooksContext, guest: PumpedGuest, words: string): Promise<void> {
  await guest.print(Buffer.from(words));
  await logHolds(context, guest, words);
}

async function logHolds(context: PumpHooksContext, guest: PumpedGuest, words: string): Promise<void> {
  await eventually(
    async () => (await logText(guest)).includes(words),
    () => context.passTime(STEP_MS),
    () => `the log holds what was printed ("${words.slice(0, 20)}")`,
  );
}

async function timesLogged(guest: PumpedGuest, words: string): Promise<number> {
  return (await logText(guest)).split(words).length - 1;
}

const logText = async (guest: PumpedGuest): Promise<string> => Buffer.from(await guest.logged()).toString('latin1');
