/** The guides' middleware in TypeScript: compiled by `npm run typecheck`, never run. Stage: tests. */
import http from 'node:http';
import express, { type Request } from 'express';
import fastify, { type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import { flyball as onExpress } from '../../src/enforce/middleware/express.js';
import { flyball as onFastify } from '../../src/enforce/middleware/fastify.js';
import { flyball as onHono } from '../../src/enforce/middleware/hono.js';
import { flyball as onHttp } from '../../src/enforce/middleware/http.js';
import type { Limiter } from '../../src/index.js';

interface SignIn {
  user: string;
}

export async function allFrameworks(limiter: Limiter): Promise<void> {
  const app = express();
  app.use(onExpress(limiter, { attributes: (req) => ({ userId: req.get('x-user') }) }));
  const ofBody = (req: Request) => ({ userId: (req.body as SignIn).user });
  app.post('/login', onExpress(limiter, { attributes: ofBody }), (_req, res) => void res.end());

  const instance = fastify();
  await instance.register(onFastify, {
    limiter,
    attributes: (req: FastifyRequest) => ({ userId: req.headers['x-user'] }),
    cost: (req: FastifyRequest) => (req.is404 ? 2 : 1),
  });
  await instance.register(onFastify, {
    limiter,
    hook: 'preHandler',
    attributes: (req: FastifyRequest<{ Body: SignIn }>) => ({ userId: req.body.user }),
  });

  const hono = new Hono();
  hono.use(onHono(limiter, { attributes: (c) => ({ userId: c.req.header('x-user') }) }));
  const late = async (c: Context) => ({ userId: (await c.req.json<SignIn>()).user });
  hono.post('/login', onHono(limiter, { attributes: late }));
  hono.use(
    onHono(limiter, { attributes: async (c) => ({ id: (await c.req.json<SignIn>()).user }) }),
  );

  const guard = onHttp(limiter, { attributes: (req) => ({ userId: req.headers['x-user'] }) });
  http.createServer(guard.wrap((_req, res) => res.end()));
}
