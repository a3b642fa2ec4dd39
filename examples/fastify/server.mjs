// A Fastify service behind a limiter. The numbers are used until a daemon has adopted the policy `api`.
import Fastify from 'fastify';
import { createLimiter } from 'flyball';
import { flyball } from 'flyball/fastify';

const limiter = createLimiter({ name: 'api', rate: 100, capacity: 200, inFlightMax: 20 });
const app = Fastify();
await app.register(flyball, { limiter });
app.get('/hello', async () => ({ hello: 'world' }));
// After the last answers telemetry is sent and the in-flight share given back.
app.addHook('onClose', () => limiter.close());
process.once('SIGTERM', () => app.close());
console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }));
