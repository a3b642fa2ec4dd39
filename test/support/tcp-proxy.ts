/** A TCP proxy for tests: what it stands before can hang, refuse or cut connections, and come back. */
import { createServer, type Socket, connect as tcpConnect } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** `hang`: accepts, and passes nothing on in either direction. `refuse`: closes at once. */
  mode: 'pass' | 'hang' | 'refuse';
  /** Where new connections lead. */
  targetPort: number;
  /** What passes is passed on so much later, in either direction. */
  delayMs: number;
  /** Looks at all bytes before they are passed on; what it answers false to goes no further. */
  watch: ((bytes: Buffer, from: 'client' | 'server', connection: object) => boolean) | null;
  /** Cuts all connections. */
  cut(): void;
  close(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const proxy = {
    ...{ mode: 'pass' as TcpProxy['mode'], targetPort, delayMs: 0 },
    watch: null as TcpProxy['watch'],
  };
  const server = createServer((inside) => {
    if (proxy.mode === 'refuse') return void inside.destroy();
    const outside = tcpConnect(proxy.targetPort, '127.0.0.1');
    for (const [from, to] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      sockets.add(from);
      // Bytes keep their order when the delay changes while some are on their way.
      let waiting = 0;
      let lastMs = 0;
      const queue: Buffer[] = [];
      from.on('data', (data) => {
        if (proxy.mode !== 'pass') return;
        const who = from === inside ? 'client' : 'server';
        if (proxy.watch !== null && !proxy.watch(data, who, inside)) return;
        if (proxy.delayMs === 0 && waiting === 0) return void to.write(data);
        waiting += 1;
        lastMs = Math.max(lastMs, performance.now() + proxy.delayMs);
        queue.push(data);
        // Timers of later moments fire later; each sends the oldest that waits.
        setTimeout(() => {
          waiting -= 1;
          to.write(queue.shift()!);
        }, lastMs - performance.now());
      });
      from.on('error', () => {});
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((ok) => server.listen(0, '127.0.0.1', ok));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return Object.assign(proxy, {
    port: (server.address() as { port: number }).port,
    cut,
    close: () => {
      cut();
      return new Promise<void>((ok) => void server.close(() => ok()));
    },
  });
}
