import type { Server, ServerResponse } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { flyball } from '../../src/enforce/middleware/hono.js';
import { middlewareCases } from '../support/middleware-cases.js';
import { useRig } from '../support/middleware-rig.js';

const rig = useRig('hono');

middlewareCases(rig, {
  name: 'hono',
  knowsRoute: true,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const app = new Hono<{ Bindings: { outgoing: ServerResponse } }>();
    app.use(async (c, next) => {
      if (c.req.method === 'POST') await c.req.text();
      await next();
    });
    for (const each of limiters) app.use(flyball(each, options));
    app.get('/ok', (c) => c.text('ok'));
    app.get('/health', (c) => c.text('healthy'));
    app.get('/users/:id', (c) => c.text('user'));
    app.get('/fail', (c) => c.text('no', 502));
    app.get('/throw', () => {
      throw new Error('boom');
    });
    app.get('/destroy', (c) => {
      c.env.outgoing.destroy();
      return c.text('gone');
    });
    app.get('/never', () => {
      handlers.arrived();
      return new Promise<Response>(() => {});
    });
    app.get('/stream', (c) =>
      stream(c, async (out) => {
        await out.write('first ');
        await new Promise<void>((ok) => handlers.streaming(ok));
        await out.write('last');
      }),
    );
    app.post('/echo', async (c) => c.text(await c.req.text()));
    app.onError((_error, c) => c.text('error', 500));
    return createAdaptorServer({ fetch: app.fetch }) as Server;
  },
});
