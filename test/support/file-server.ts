/**
 * An HTTP server on loopback that serves as it is told, well or badly, and remembers what it was asked. With a certificate
 * it serves https.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

export interface FileServer {
  readonly url: string;
  readonly requests: { readonly path: string; readonly headers: IncomingMessage['headers'] }[];
  handler: Handler;
  /** Connections are cut and new ones are refused. */
  readonly stop: () => Promise<void>;
}

export async function fileServer(
  handler: Handler,
  certificate?: { readonly key: Buffer; readonly cert: Buffer },
): Promise<FileServer> {
  const requests: FileServer['requests'] = [];
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push({ path: request.url ?? '', headers: request.headers });
    // A client that leaves in the middle is what some tests are about.
    response.on('error', () => undefined);
    void Promise.resolve(served.handler(request, response)).catch(() => response.destroy());
  };
  const server = certificate === undefined ? createServer(answer) : createTlsServer(certificate, answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(stop);
  const scheme = certificate === undefined ? 'http' : 'https';
  const { port } = server.address() as AddressInfo;
  const served: FileServer = { url: `${scheme}://127.0.0.1:${port}`, requests, handler, stop };
  return served;
}

/** Serves a body with its validators, honouring conditions and ranges as a good server does. */
export function wellServed(body: Buffer, { etag }: { readonly etag?: string } = {}): Handler {
  return (request, response) => {
    if (etag !== undefined) response.setHeader('etag', etag);
    if (etag !== undefined && request.headers['if-none-match'] === etag) {
      response.writeHead(304).end();
      return;
    }
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    if (range !== null && etag !== undefined && request.headers['if-range'] === etag) {
      const from = Number(range[1]);
      response.writeHead(206, {
        'content-length': body.length - from,
        'content-range': `bytes ${from}-${body.length - 1}/${body.length}`,
      });
      response.end(body.subarray(from));
      return;
    }
    response.writeHead(200, { 'content-length': body.length });
    response.end(body);
  };
}

/** Announces the whole body and hangs up after a part of it. */
export function cutAfter(body: Buffer, bytes: number, { etag }: { readonly etag?: string } = {}): Handler {
  return async (_request, response) => {
    response.writeHead(200, { 'content-length': body.length, ...(etag === undefined ? {} : { etag }) });
    await new Promise<void>((resolve) => response.write(body.subarray(0, bytes), () => resolve()));
    response.destroy();
  };
}
