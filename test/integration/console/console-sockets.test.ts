/** The console over real unix sockets and real files, against lines that behave like those of two VMMs. */
import { readFileSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { consoleSourceSuite, pause, pumpHooksSuite, type PumpHooksContext } from '@eitri/conformance';
import type { ConsoleSource, VmUid } from '@eitri/core/contracts';
import { KIB, MIB } from '@eitri/core/kit';
import { ConsoleManager } from '../../../src/console/index.js';
import { FastClock, MemoryLogger, newUid, Reader } from '../../support/console-fixtures.js';
import { CLOUD_HYPERVISOR_LIKE, QEMU_LIKE, SerialSocket, type SerialBehaviour } from '../../support/serial-sockets.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const SPEED = 5;

/** The smallest source over sockets. */
class SocketConsoleSource implements ConsoleSource {
  constructor(private readonly pathOf: (uid: VmUid) => string) {}

  readonly open = async (uid: VmUid, signal: AbortSignal): Promise<Duplex> => {
    signal.throwIfAborted();
    const socket = connect({ path: this.pathOf(uid), allowHalfOpen: true });
    await connection(socket);
    return socket;
  };
}

async function connection(socket: Socket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
}

class Host {
  private readonly folder = tempFolder();
  private readonly sockets = new Map<VmUid, SerialSocket>();
  readonly source = new SocketConsoleSource((uid) => this.socketOf(uid));
  readonly logger = new MemoryLogger();
  consoles = this.startAgent();

  constructor(private readonly behaviour: SerialBehaviour) {}

  startAgent(): ConsoleManager {
    return new ConsoleManager(this.source, new FastClock(SPEED), this.logger, { logPathOf: (uid) => this.logOf(uid) });
  }

  guest(): { uid: VmUid; line: SerialSocket } {
    const uid = newUid();
    const line = new SerialSocket(this.socketOf(uid), this.behaviour);
    this.sockets.set(uid, line);
    return { uid, line };
  }

  logOf(uid: VmUid): string {
    return join(this.folder, `${uid}.log`);
  }

  logged(uid: VmUid): string {
    const files = [`${this.logOf(uid)}.1`, this.logOf(uid)];
    return files.map((path) => (sizeOf(path) > 0 ? readFileSync(path, 'latin1') : '')).join('');
  }

  diskBytes(uid: VmUid): number {
    return sizeOf(this.logOf(uid)) + sizeOf(`${this.logOf(uid)}.1`);
  }

  readonly end = async (): Promise<void> => {
    await this.consoles.stopAll(1000);
    for (const line of this.sockets.values()) await line.gone();
  };

  private socketOf(uid: VmUid): string {
    return join(this.folder, uid.slice(0, 8));
  }
}

const numbersIn = (text: string): number[] => [...text.matchAll(/<(\d+)>/g)].map((match) => Number(match[1]));

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

function hostFor(behaviour: SerialBehaviour): Host {
  const host = new Host(behaviour);
  onTestFinished(host.end);
  return host;
}

interface HookContext extends PumpHooksContext {
  readonly host: Host;
}

function hooksOver(behaviour: SerialBehaviour): HookContext {
  const host = new Host(behaviour);
  return {
    host,
    hooks: host.consoles,
    passTime: (ms) => pause(ms / SPEED),
    newGuest: () => {
      const { uid, line } = host.guest();
      return Promise.resolve({
        uid,
        powerOn: () => line.powerOn(),
        print: (bytes) => line.print(bytes),
        reboot: () => line.reboot(),
        gone: () => line.gone(),
        clients: () => line.connected,
        mostClients: () => line.mostClients,
        cutOff: () => line.resets,
        logged: () => Promise.resolve(Buffer.from(host.logged(uid), 'latin1')),
      });
    },
  };
}

for (const [name, behaviour] of [
  ['like QEMU', QEMU_LIKE],
  ['like cloud-hypervisor', CLOUD_HYPERVISOR_LIKE],
] as const) {
  consoleSourceSuite(
    `console source: sockets ${name}`,
    () => {
      const host = new Host(behaviour);
      return {
        host,
        source: host.source,
        newGuest: async () => {
          const { uid, line } = host.guest();
          await line.powerOn();
          return {
            uid,
            print: (bytes) => line.print(bytes),
            typed: () => line.typed(),
            reboot: () => line.reboot(),
            gone: () => line.gone(),
          };
        },
      };
    },
    { dispose: (context) => context.host.end() },
  );

  pumpHooksSuite(`pump hooks: the console manager over sockets ${name}`, () => hooksOver(behaviour), {
    dispose: (context) => context.host.end(),
  });

  describe(`a console ${name}`, () => {
    it('a guest prints 100 MB while three look and one of them never reads: at most 8 MiB are ever on disk, and two see all', async () => {
      const host = hostFor(behaviour);
      const { uid, line } = host.guest();
      await line.powerOn();
      await host.consoles.ensure(uid);
      await until(() => host.consoles.state(uid) === 'connected' && line.connected === 1);
      const look = { write: false, force: false, backlog: true };
      const stuck = host.consoles.attach(uid, look);
      const readers = [0, 1].map(() => new Reader(host.consoles.attach(uid, look).stream, { keep: false }));
      const piece = Buffer.alloc(64 * KIB, 'the same line over and over\r\n');
      const total = 100 * MIB;
      let most = 0;
      for (let printed = 0; printed < total; printed += piece.length) {
        await line.print(piece);
        most = Math.max(most, host.diskBytes(uid));
      }
      await until(() => readers.every((reader) => reader.bytes === total));
      expect(await stuck.ended).toEqual({ reason: 'dropped' });
      // A slow disk is allowed to lose output, and is seen to have caught up once a mark comes through to its end.
      await until(async () => {
        await line.print('.');
        return host.logged(uid).endsWith('.');
      });
      await line.print('the last words');
      await host.consoles.stop(uid);
      most = Math.max(most, host.diskBytes(uid));
      expect(most).toBeLessThanOrEqual(8 * MIB);
      expect(most).toBeGreaterThan(4 * MIB);
      expect(host.logged(uid).endsWith('the last words')).toBe(true);
      expect(line.resets).toBe(0);
    });

    it('the agent is started anew ten times under a guest that prints: nothing is logged twice, and each gap is marked', async () => {
      const host = hostFor(behaviour);
      const { uid, line } = host.guest();
      await line.powerOn();
      let number = 0;
      for (let life = 0; life < 10; life++) {
        const consoles = host.startAgent();
        await (life === 0 ? consoles.ensure(uid) : consoles.adopt(uid));
        await until(() => line.connected === 1);
        for (let i = 0; i < 20; i++) await line.print(`<${String(number++)}>`);
        await until(() => host.logged(uid).includes(`<${String(number - 1)}>`));
        // All of this boot is shown, and as it is logged.
        const reader = new Reader(consoles.attach(uid, { write: false, force: false, backlog: true }).stream);
        await until(() => reader.text.endsWith(`<${String(number - 1)}>`));
        expect(numbersIn(reader.text)).toEqual(numbersIn(host.logged(uid)));
        await consoles.stopAll(1000);
        await until(() => line.connected === 0);
        await line.print(`<${String(number++)}>`);
      }
      const seen = numbersIn(host.logged(uid));
      expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
      expect(host.logged(uid).match(/console reopened at/g)?.length).toBe(9);
      // Where the VMM keeps what nobody read, nothing is missing but the words after the last agent.
      if (behaviour.keepsBacklog) expect(seen.length).toBe(number - 1);
      expect(line.resets).toBe(0);
    });

    it('the agent lets go under full flow: the line serves the next agent', async () => {
      const host = hostFor(behaviour);
      const { uid, line } = host.guest();
      await line.powerOn();
      await host.consoles.ensure(uid);
      await until(() => line.connected === 1);
      const flowing = new AbortController();
      const flow = (async () => {
        while (!flowing.signal.aborted) {
          await line.print(Buffer.alloc(64 * KIB, 'f'));
          await pause(1);
        }
      })();
      await until(() => host.diskBytes(uid) > MIB);
      await host.consoles.stopAll(1000);
      expect(line.resets).toBe(0);
      const next = host.startAgent();
      await next.ensure(uid);
      await until(() => next.state(uid) === 'connected');
      flowing.abort();
      await flow;
      await line.print('for the next agent');
      await until(() => host.logged(uid).includes('for the next agent'));
      await next.stopAll(1000);
    });
  });
}

describe('a console like QEMU', () => {
  it('a stray client was first: the pump waits behind it, and is served when it leaves', async () => {
    const host = hostFor(QEMU_LIKE);
    const { uid, line } = host.guest();
    await line.powerOn();
    const stray = connect(line.path);
    await connection(stray);
    const strayRead = new Reader(stray);
    await until(() => line.connected === 1);
    await host.consoles.ensure(uid);
    await until(() => line.connected === 2);
    await line.print('for the stray');
    await until(() => strayRead.text === 'for the stray');
    stray.end();
    await until(() => line.connected === 1);
    await line.print('for the pump');
    await until(() => host.logged(uid) === 'for the pump');
  });
});

describe('a console like cloud-hypervisor', () => {
  it('a stray client takes the line: the pump takes it back, and the log says that output may be missing', async () => {
    const host = hostFor(CLOUD_HYPERVISOR_LIKE);
    const { uid, line } = host.guest();
    await line.powerOn();
    await host.consoles.ensure(uid);
    await until(() => line.connected === 1);
    await line.print('before');
    await until(() => host.logged(uid) === 'before');
    const stray = connect(line.path);
    await connection(stray);
    const strayRead = new Reader(stray);
    await until(() => line.connections === 3 && strayRead.ended);
    await line.print('after');
    await until(() => host.logged(uid).endsWith('after'));
    expect(host.logged(uid)).toMatch(/^before\n--- eitri: console reconnected at .* ---\nafter$/);
  });

  it('the guest reboots twenty times: the viewers stay, and each boot is seen once', async () => {
    const host = hostFor(CLOUD_HYPERVISOR_LIKE);
    const { uid, line } = host.guest();
    await line.powerOn();
    await host.consoles.ensure(uid);
    const reader = new Reader(host.consoles.attach(uid, { write: false, force: false, backlog: true }).stream);
    let expected = '';
    for (let boot = 0; boot < 20; boot++) {
      expected += `<boot ${String(boot)}>`;
      await line.print(`<boot ${String(boot)}>`);
      await until(() => reader.text === expected);
      await line.reboot();
    }
    expect([...host.logged(uid).matchAll(/<boot \d+>/g)].map((match) => match[0]).join('')).toBe(expected);
  });
});
