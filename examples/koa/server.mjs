// A Koa service behind a limiter, by `flyball/http`. The numbers are used until a daemon has adopted the policy `api`.
import { createLimiter } from 'flyball';
import { flyball } from 'flyball/http';
import Koa from 'koa';

/** Koa middleware: a denial is answered already, and Koa keeps its hands off. */
export function limit(guard) {
  return async (ctx, next) => {
    if (await guard(ctx.req, ctx.res)) return next();
    ctx.respond = false;
  };
}

const limiter = createLimiter({ name: 'api', rate: 100, capacity: 200, inFlightMax: 20 });
const app = new Koa();
app.use(limit(flyball(limiter)));
app.use((ctx) => {
  ctx.body = { hello: 'world' };
});
const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${server.address().port}`),
);
// The last answers first; then telemetry is sent and the in-flight share given back.
process.once('SIGTERM', () => server.close(() => limiter.close()));
