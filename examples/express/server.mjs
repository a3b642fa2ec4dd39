// An Express service behind a limiter. The numbers are used until a daemon has adopted the policy `api`.
import express from 'express';
import { createLimiter } from 'flyball';
import { flyball } from 'flyball/express';

const limiter = createLimiter({ name: 'api', rate: 100, capacity: 200, inFlightMax: 20 });
const app = express();
app.use(flyball(limiter));
app.get('/hello', (_req, res) => res.json({ hello: 'world' }));
const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${server.address().port}`),
);
// The last answers first; then telemetry is sent and the in-flight share given back.
process.once('SIGTERM', () => server.close(() => limiter.close()));
