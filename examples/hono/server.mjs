// A Hono service behind a limiter. The numbers are used until a daemon has adopted the policy `api`.
import { serve } from '@hono/node-server';
import { createLimiter } from 'flyball';
import { flyball } from 'flyball/hono';
import { Hono } from 'hono';

const limiter = createLimiter({ name: 'api', rate: 100, capacity: 200, inFlightMax: 20 });
const app = new Hono();
app.use(flyball(limiter));
app.get('/hello', (c) => c.json({ hello: 'world' }));
const port = Number(process.env.PORT ?? 3000);
const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, (address) =>
  console.log(`http://127.0.0.1:${address.port}`),
);
// The last answers first; then telemetry is sent and the in-flight share given back.
process.once('SIGTERM', () => server.close(() => limiter.close()));
