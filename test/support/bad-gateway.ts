/** An HTTP proxy for tests: passes on, streams too, and answers 502 with a page of its own while what is behind it is away. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface BadGateway {
  readonly url: string;
  /** `http://127.0.0.1:9464`: where requests lead. */
  target: string;
  /** Requests answered with 502 so far. */
  refused: number;
  close(): Promise<void>;
}

export async function startBadGateway(target: string): Promise<BadGateway> {
  const gateway = { target, refused: 0, url: '', close: async () => {} };
  const server = createServer((from, to) => {
    const { hostname, port } = new URL(gateway.target);
    const { method, url: path, headers } = from;
    const onward = request({ hostname, port, method, path, headers }, (reply) => {
      to.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(to);
      reply.on('error', () => to.destroy());
    });
    onward.on('error', () => {
      gateway.refused += 1;
      if (to.headersSent) return void to.destroy();
      to.writeHead(502, { 'content-type': 'text/html' }).end('<h1>502 Bad Gateway</h1>');
    });
    to.on('close', () => onward.destroy());
    from.pipe(onward);
  });
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  const { port } = server.address() as AddressInfo;
  gateway.url = `http://127.0.0.1:${port}`;
  gateway.close = () => {
    const closed = new Promise<void>((ok) => server.close(() => ok()));
    server.closeAllConnections();
    return closed;
  };
  return gateway;
}
