/** The agent's own pump keeps the contract of pump hooks, with real files under its logs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeConsole, pause, pumpHooksSuite, type PumpHooksContext } from '@eitri/conformance';
import type { VmUid } from '@eitri/core/contracts';
import { ConsoleManager } from '../../src/console/index.js';
import { FastClock, MemoryLogger, newUid } from '../support/console-fixtures.js';
import { tempFolder } from '../support/temp.js';

const SPEED = 5;

interface Context extends PumpHooksContext {
  readonly end: () => Promise<void>;
}

function makeContext(): Context {
  const folder = tempFolder();
  const logPathOf = (uid: VmUid): string => join(folder, `${uid}.log`);
  const lines = new FakeConsole();
  const consoles = new ConsoleManager(lines, new FastClock(SPEED), new MemoryLogger(), { logPathOf });
  return {
    hooks: consoles,
    passTime: (ms) => pause(ms / SPEED),
    newGuest: () => {
      const uid = newUid();
      const line = lines.line(uid);
      const said = (act: () => void): Promise<void> => {
        act();
        return Promise.resolve();
      };
      return Promise.resolve({
        uid,
        powerOn: () => said(() => line.powerOn()),
        print: (bytes) => said(() => line.print(bytes)),
        reboot: () => said(() => line.reboot()),
        gone: () => said(() => line.gone()),
        clients: () => line.connected,
        mostClients: () => line.mostClients,
        cutOff: () => line.cutOff,
        logged: () =>
          Promise.resolve(
            Buffer.concat(
              [`${logPathOf(uid)}.1`, logPathOf(uid)]
                .filter((path) => existsSync(path))
                .map((path) => readFileSync(path)),
            ),
          ),
      });
    },
    end: async () => {
      await consoles.stopAll(1000);
    },
  };
}

pumpHooksSuite<Context>('pump hooks: the console manager', makeContext, { dispose: (context) => context.end() });
