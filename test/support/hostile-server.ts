/** An HTTP server for tests that does what no server should, and remembers what it was sent. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Hostility =
  | 'hang'
  | 'drop'
  | 'drop-midway'
  | '500'
  | '503'
  | '401'
  | 'large'
  | 'announced-large'
  | 'redirect-loop'
  | 'redirect-away'
  | 'redirect-within'
  | 'invalid-utf8'
  | 'slowloris'
  | 'gzip'
  | 'html'
  | 'none';

export interface HostileServer {
  readonly url: string;
  mode: Hostility;
  /** What is answered by `none`, and after a redirect within. */
  body: string;
  contentType: string;
  readonly seen: { path: string; headers: IncomingHttpHeaders }[];
  /** Connections that were made so far. */
  connections: number;
  /** Of `none`. */
  statusFor: (path: string) => number;
  close(): void;
}

const CHUNK = Buffer.alloc(4_000_000, 'x 1\n');

export async function startHostile(elsewhere = 'http://127.0.0.1:1/'): Promise<HostileServer> {
  const seen: HostileServer['seen'] = [];
  const self = {
    mode: 'none' as Hostility,
    body: '',
    contentType: 'text/plain',
    connections: 0,

    statusFor: (_path: string) => 200,
  };

  function answer(path: string, response: ServerResponse): void {
    response.on('error', () => {});
    switch (self.mode) {
      case 'hang':
        return;
      case 'drop':
        return void response.destroy();
      case 'drop-midway':
        response.writeHead(200, { 'content-length': '1000' });
        response.write('x 1\n');
        return void setTimeout(() => response.destroy(), 20);
      case '500':
      case '503':
      case '401':
        return void response.writeHead(Number(self.mode)).end('no');
      case 'large': {
        const more = () => {
          while (!response.destroyed && response.write(CHUNK));
        };
        response.on('drain', more);
        more();
        return;
      }
      case 'announced-large':
        response.writeHead(200, { 'content-length': '20000000' });
        return void response.write('x 1\n');
      case 'redirect-loop':
        return void response.writeHead(302, { location: `${path}x` }).end();
      case 'redirect-away':
        return void response.writeHead(307, { location: elsewhere }).end();
      case 'redirect-within':
        if (!path.startsWith('/moved')) {
          return void response.writeHead(308, { location: '/moved' }).end();
        }
        break;
      case 'invalid-utf8':
        return void response.end(Buffer.from([0x78, 0x20, 0xff, 0xfe, 0x31, 0x0a]));
      case 'slowloris': {
        response.writeHead(200);
        const drip = setInterval(() => response.write('#'), 50);
        return void response.on('close', () => clearInterval(drip));
      }
      case 'gzip':
        return void response.writeHead(200, { 'content-encoding': 'gzip' }).end('x 1\n');
      case 'html':
        return void response
          .writeHead(200, { 'content-type': 'text/html' })
          .end('<html><body>Sign in</body></html>');
    }
    response.writeHead(self.statusFor(path), { 'content-type': self.contentType }).end(self.body);
  }

  const server = createServer((request, response) => {
    seen.push({ path: request.url ?? '', headers: request.headers });
    answer(request.url ?? '', response);
  });
  server.on('connection', () => {
    self.connections += 1;
  });
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  return Object.assign(self, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close() {
      server.closeAllConnections();
      server.close();
    },
  });
}
