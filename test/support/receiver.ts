/** A server that alerts are sent to: keeps what it got, and answers as it is told. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

export interface Receiver {
  url: string;
  readonly got: Received[];
  /** From now on; default: 200 with an empty body. */
  answer(by: (response: ServerResponse, got: Received) => void): void;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const got: Received[] = [];
  let by = (response: ServerResponse, _got: Received): void => void response.end();
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    const received = { path: request.url ?? '', headers: request.headers, body };
    got.push(received);
    by(response, received);
  });
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    got,
    answer(next) {
      by = next;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((ok) => server.close(ok));
    },
  };
}
