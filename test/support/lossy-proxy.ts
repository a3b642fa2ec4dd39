/** A TCP proxy that loses one request, or the reply to it, and cuts the connection: what a broken network does. */
import { createServer, type Socket, connect as tcpConnect } from 'node:net';

export interface LossyProxy {
  readonly port: number;
  /** The next request this holds for is lost, or its reply is. Then all passes again. */
  loseNext(which: 'request' | 'reply', of: (request: string) => boolean): void;
  /** How many were lost. */
  readonly lost: number;
  close(): Promise<void>;
}

export async function startLossyProxy(targetPort: number): Promise<LossyProxy> {
  const sockets = new Set<Socket>();
  let next: { which: 'request' | 'reply'; of: (request: string) => boolean } | null = null;
  let lost = 0;
  const server = createServer((inside) => {
    const outside = tcpConnect(targetPort, '127.0.0.1');
    let muted = false;
    for (const socket of [inside, outside]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        inside.destroy();
        outside.destroy();
      });
    }
    inside.on('data', (data) => {
      if (!next?.of(data.toString('latin1'))) return void outside.write(data);
      muted = true;
      lost += 1;
      if (next.which === 'reply') outside.write(data);
      else inside.destroy();
      next = null;
    });
    outside.on('data', (data) => {
      if (muted) inside.destroy();
      else inside.write(data);
    });
  });
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  return {
    port: (server.address() as { port: number }).port,
    loseNext(which, of) {
      next = { which, of };
    },
    get lost() {
      return lost;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((ok) => void server.close(() => ok()));
    },
  };
}
