/**
 * QEMU's console source keeps its contract, over a socket that behaves as QEMU's serial chardev does: what is printed
 * while nobody is connected is dropped, one client is served and others wait, the line stays over a reset, and a client
 * that half-closes is let go of.
 */
import { mkdirSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { consoleSourceSuite, sampleUid, type ConsoleGuest, type ConsoleSourceContext } from '@eitri/conformance';
import type { VmUid } from '@eitri/core/contracts';
import { onTestFinished } from 'vitest';
import { qemuLab } from '../support/qemu/lab.js';
import { until } from '../support/until.js';

async function serialLine(uid: VmUid, path: string): Promise<ConsoleGuest> {
  mkdirSync(dirname(path), { recursive: true });
  const typed: Buffer[] = [];
  const clients: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => typed.push(chunk));
    socket.on('close', () => {
      clients.splice(clients.indexOf(socket), 1);
      clients[0]?.resume();
    });
    clients.push(socket);
    if (clients.length === 1) socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const gone = async (): Promise<void> => {
    for (const client of clients) client.destroySoon();
    if (server.listening) await new Promise<void>((resolve) => void server.close(() => resolve()));
  };
  onTestFinished(gone);
  return {
    uid,
    print: async (bytes) => {
      // The suite has opened the line: its connection may still be in the queue.
      const client = await until(() => clients[0]);
      await new Promise<void>((resolve) => void client.write(bytes, () => resolve()));
    },
    typed: () => Buffer.concat(typed),
    reboot: async () => Promise.resolve(),
    gone,
  };
}

consoleSourceSuite('console source: qemu', (): ConsoleSourceContext => {
  const lab = qemuLab();
  let guests = 0;
  return {
    source: lab.agent().console,
    newGuest: () => {
      const uid = sampleUid(++guests);
      return serialLine(uid, join(lab.pathsOf(uid).runFolder, 'serial.sock'));
    },
  };
});
