// A service of N workers behind one port, each with its own prom-client page: `node page-workers.mjs <port> <workers>`.
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { Counter, collectDefaultMetrics, Registry } from 'prom-client';

const [, , port, workers] = process.argv;
if (cluster.isPrimary) {
  // Each new connection goes to the next worker.
  cluster.schedulingPolicy = cluster.SCHED_RR;
  for (let i = 0; i < Number(workers); i++) cluster.fork({ OWN: String(i) });
  process.once('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.kill();
    process.exit(0);
  });
  let ready = 0;
  cluster.on('listening', () => {
    ready += 1;
    if (ready === Number(workers)) process.send?.('ready');
  });
} else {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({ name: 'requests_total', help: 'requests', registers: [registry] });
  requests.inc(100 * (Number(process.env.OWN) + 1));
  setInterval(() => requests.inc(1), 50);
  createServer(async (_request, response) => {
    response.setHeader('content-type', registry.contentType);
    response.end(await registry.metrics());
  }).listen(Number(port), '127.0.0.1');
}
