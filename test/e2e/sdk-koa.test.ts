import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { flyball, type HttpGuard, type WithDecision } from '../../src/enforce/middleware/http.js';
import { bodyOf, middlewareCases } from '../support/middleware-cases.js';
import { useRig } from '../support/middleware-rig.js';

/** Koa without its types, which nothing else needs. */
interface Context {
  req: IncomingMessage;
  res: ServerResponse;
  path: string;
  status: number;
  body: unknown;
  respond: boolean;
}
type Middleware = (ctx: Context, next: () => Promise<void>) => unknown;
interface App {
  silent: boolean;
  use(middleware: Middleware): App;
  callback(): RequestListener;
}
const { default: Koa } = (await import('koa' as string)) as { default: new () => App };

const rig = useRig('koa');

/** As in examples/koa. */
const limit =
  (guard: HttpGuard): Middleware =>
  async (ctx, next) => {
    if (await guard(ctx.req, ctx.res)) return next();
    ctx.respond = false;
  };

middlewareCases(rig, {
  name: 'koa',
  knowsRoute: false,
  namesRoutes: false,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const app = new Koa();
    app.silent = true;
    let body = '';
    app.use(async (ctx, next) => {
      if (ctx.req.method === 'POST') body = await bodyOf(ctx.req);
      await next();
    });
    for (const each of limiters) app.use(limit(flyball(each, options)));
    const routes: Record<string, (ctx: Context) => unknown> = {
      '/ok': (ctx) => (ctx.body = 'ok'),
      '/health': (ctx) => (ctx.body = 'healthy'),
      '/users': (ctx) => (ctx.body = 'user'),
      '/fail': (ctx) => (ctx.status = 502),
      '/throw': () => {
        throw new Error('boom');
      },
      '/destroy': (ctx) => ctx.res.destroy(),
      '/never': () => {
        handlers.arrived();
        return new Promise(() => {});
      },
      '/stream': (ctx) => {
        const stream = new PassThrough();
        stream.write('first ');
        handlers.streaming(() => stream.end('last'));
        ctx.body = stream;
      },
      '/echo': (ctx) => (ctx.body = body),
    };
    app.use(async (ctx) => routes[/^\/\w+/.exec(ctx.path)![0]]?.(ctx));
    return createServer(app.callback());
  },
});

test('the decision is on the raw request; what a handler notes leads', async () => {
  const api = await rig.limiter({ rate: 1000, capacity: 1000 });
  const app = new Koa();
  app.silent = true;
  app.use(limit(flyball(api)));
  app.use((ctx) => {
    (ctx.req as WithDecision).flyball!.note({ upstream: 'pay', code: 'SYSTEMERROR' });
    throw new Error('boom');
  });
  expect((await fetch(await rig.listen(createServer(app.callback())))).status).toBe(500);
  const sums = await rig.reported(api);
  expect(sums).toMatchObject({ adm: 1, err: 1, 'uc:pay:SYSTEMERROR': 1 });
});
