// A plain node:http service behind a limiter. The numbers are used until a daemon has adopted the policy `api`.
import { createServer } from 'node:http';
import { createLimiter } from 'flyball';
import { flyball } from 'flyball/http';

const limiter = createLimiter({ name: 'api', rate: 100, capacity: 200, inFlightMax: 20 });
const guard = flyball(limiter);
const server = createServer(
  guard.wrap((_req, res) => {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ hello: 'world' }));
  }),
);
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${server.address().port}`),
);
// The last answers first; then telemetry is sent and the in-flight share given back.
process.once('SIGTERM', () => server.close(() => limiter.close()));
