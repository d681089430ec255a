import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '@eitri/conformance';
import { errorFactory } from '@eitri/core/kit';
import { QmpClients } from '../../../plugins/qemu/src/qmp.js';
import { tempFolder } from '../../support/temp.js';
import { until } from '../../support/until.js';

const signal = new AbortController().signal;
const GREETING = { QMP: { version: { qemu: { major: 7, minor: 2, micro: 22 } }, capabilities: ['oob'] } };

interface Request {
  readonly execute: string;
  readonly id: string;
}
type Answer = (request: Request, say: (message: object) => void, socket: Socket) => void;

/** Serves one client at a time, as QEMU does: the next one is greeted when the one before it has gone. */
async function server(answer: Answer, manner: 'greets' | 'silent' = 'greets') {
  const path = join(tempFolder(), 'qmp.sock');
  const waiting: Socket[] = [];
  const seen: string[] = [];
  let served: Socket | undefined;
  let most = 0;
  const serve = (socket: Socket): void => {
    served = socket;
    most++;
    const say = (message: object): void => void socket.write(`${JSON.stringify(message)}\r\n`);
    if (manner === 'greets') say(GREETING);
    let rest = '';
    socket.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const request = JSON.parse(line) as Request;
        seen.push(request.execute);
        if (request.execute === 'qmp_capabilities') say({ return: {}, id: request.id });
        else answer(request, say, socket);
      }
    });
    socket.on('close', () => {
      served = waiting.shift();
      if (served !== undefined) serve(served);
    });
  };
  const listener = createServer((socket) => {
    socket.on('error', () => undefined);
    if (served === undefined) serve(socket);
    else waiting.push(socket);
  });
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  onTestFinished(() => {
    served?.destroy();
    for (const socket of waiting) socket.destroy();
    listener.close();
  });
  return { path, seen, connections: () => most, free: () => served === undefined };
}

const client = (clock = new ManualClock()): QmpClients => new QmpClients({ clock, errors: errorFactory });
const status = [{ execute: 'query-status' }];

describe('qmp', () => {
  test('events come before and between the answers: each command gets its own answer', async () => {
    const qemu = await server(({ execute, id }, say) => {
      say({ event: 'RESUME', timestamp: {} });
      say({ return: `answer to ${execute}`, id });
      say({ event: 'STOP', timestamp: {} });
    });
    const answers = await client().run(qemu.path, [{ execute: 'cont' }, { execute: 'query-status' }], 1_000, signal);
    expect(answers).toEqual(['answer to cont', 'answer to query-status']);
  });

  test('an answer of another id comes first: it is passed over', async () => {
    const qemu = await server(({ id }, say) => {
      say({ return: 'not yours', id: 'somebody-else' });
      say({ return: 'yours', id });
    });
    expect(await client().run(qemu.path, status, 1_000, signal)).toEqual(['yours']);
  });

  test('a command is refused: the rejection quotes what QEMU says', async () => {
    const qemu = await server(({ id }, say) => say({ error: { class: 'GenericError', desc: 'no such thing' }, id }));
    await expect(client().run(qemu.path, status, 1_000, signal)).rejects.toMatchObject({
      cause: { message: 'qmp query-status: no such thing' },
    });
  });

  test('several ask at once: they are served one after the other, and none is left ungreeted', async () => {
    const qemu = await server(({ id }, say) => say({ return: id, id }));
    const qmp = client();
    await Promise.all(Array.from({ length: 8 }, () => qmp.run(qemu.path, status, 1_000, signal)));
    expect(qemu.connections()).toBe(8);
  });

  test('somebody else holds the socket: the request fails when its time is over, and does not hang', async () => {
    const qemu = await server(() => undefined, 'silent');
    const clock = new ManualClock();
    const asked = client(clock).run(qemu.path, status, 1_000, signal);
    const failed = expect(asked).rejects.toThrow(/no answer within 1000 ms/);
    await until(() => !qemu.free());
    await clock.advance(1_000);
    await failed;
    await until(() => qemu.free(), { what: 'the connection is closed' });
  });

  test('a request waits behind one that gets no answer: its own time ends too', async () => {
    const qemu = await server(() => undefined);
    const clock = new ManualClock();
    const qmp = client(clock);
    const both = [qmp.run(qemu.path, status, 5_000, signal), qmp.run(qemu.path, status, 1_000, signal)] as const;
    const second = expect(both[1]).rejects.toThrow(/no answer within 1000 ms/);
    const first = expect(both[0]).rejects.toThrow(/no answer within 5000 ms/);
    await until(() => qemu.seen.includes('query-status'));
    await clock.advance(1_000);
    await second;
    await clock.advance(4_000);
    await first;
  });

  test('a request got no answer: the one after it is served all the same', async () => {
    let silent = true;
    const qemu = await server(({ id }, say) => {
      if (!silent) say({ return: 'ok', id });
    });
    const clock = new ManualClock();
    const qmp = client(clock);
    const failed = expect(qmp.run(qemu.path, status, 1_000, signal)).rejects.toThrow();
    await until(() => qemu.seen.includes('query-status'));
    await clock.advance(1_000);
    await failed;
    silent = false;
    expect(await qmp.run(qemu.path, status, 1_000, signal)).toEqual(['ok']);
  });

  test('QEMU ends while it is asked: the request rejects at once', async () => {
    const qemu = await server((_request, _say, socket) => socket.destroy());
    await expect(client().run(qemu.path, status, 1_000, signal)).rejects.toThrow(/ask qmp/);
  });

  test('nobody listens: the request rejects at once', async () => {
    const path = join(tempFolder(), 'qmp.sock');
    await expect(client().run(path, status, 1_000, signal)).rejects.toMatchObject({ cause: { code: 'ENOENT' } });
  });

  test('something else listens there, and sends without end: it is cut off', async () => {
    const qemu = await server((_request, _say, socket) => {
      const pour = (): void => {
        while (socket.writable && socket.write('x'.repeat(65_536)));
      };
      socket.on('drain', pour);
      pour();
    });
    await expect(client().run(qemu.path, status, 60_000, signal)).rejects.toMatchObject({
      cause: { message: expect.stringContaining('more than') as string },
    });
  });

  test('the caller gives up: the request rejects with its reason, and the connection goes', async () => {
    const qemu = await server(() => undefined);
    const giveUp = new AbortController();
    const failed = expect(client().run(qemu.path, status, 60_000, giveUp.signal)).rejects.toThrow('enough');
    await until(() => qemu.seen.includes('query-status'));
    giveUp.abort(new Error('enough'));
    await failed;
    await until(() => qemu.free());
  });
});
