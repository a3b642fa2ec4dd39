import 'reflect-metadata';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import {
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Module,
  Post,
  Res,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect, test } from 'vitest';
import { flyball, type HttpGuard } from '../../src/enforce/middleware/http.js';
import { bodyOf, type Handlers, middlewareCases } from '../support/middleware-cases.js';
import { useRig } from '../support/middleware-rig.js';

const rig = useRig('nest');

/** As in examples/nest. */
const limit = (guard: HttpGuard) => (req: IncomingMessage, res: ServerResponse, next: () => void) =>
  guard(req, res).then((go) => go && next(), next);

let body = '';

/** A service of one controller; its decorators are called, since no compiler is here to do it. */
async function nest(handlers: Partial<Handlers>): Promise<INestApplication> {
  class Service {
    ok = () => 'ok';
    health = () => 'healthy';
    user = () => 'user';
    fail = () => {
      throw new HttpException('no', 502);
    };
    throws = () => {
      throw new Error('boom');
    };
    destroy = (res: ServerResponse) => res.destroy();
    never = (_res: ServerResponse) => handlers.arrived?.();
    stream = (res: ServerResponse) => {
      res.write('first ');
      handlers.streaming?.(() => res.end('last'));
    };
    echo = () => body;
  }
  const proto = Service.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
  const paths = { ok: 'ok', health: 'health', user: 'users/:id', fail: 'fail', throws: 'throw' };
  const raw = { destroy: 'destroy', never: 'never', stream: 'stream' };
  for (const [name, path] of Object.entries({ ...paths, ...raw, echo: 'echo' })) {
    proto[name] = function (this: Record<string, (...args: unknown[]) => unknown>, ...args) {
      return this[name]!(...args);
    };
    const method = Object.getOwnPropertyDescriptor(proto, name)!;
    (name === 'echo' ? Post : Get)(path)(proto, name, method);
    if (name in raw) Res()(proto, name, 0);
  }
  Controller()(Service);
  class Root {}
  Module({ controllers: [Service] })(Root);
  return NestFactory.create(Root, { logger: false });
}

async function served(app: INestApplication): Promise<Server> {
  await app.init();
  return app.getHttpServer() as Server;
}

middlewareCases(rig, {
  name: 'nest',
  knowsRoute: false,
  namesRoutes: false,
  readsBodyFirst: true,
  async serve({ limiters, options, handlers }) {
    const app = await nest(handlers);
    app.use(async (req: IncomingMessage, _res: ServerResponse, next: () => void) => {
      if (req.method === 'POST') body = await bodyOf(req);
      next();
    });
    for (const each of limiters) app.use(limit(flyball(each, options)));
    return served(app);
  },
});

test('as a guard it knows the route: one bucket a pattern; Nest leaves the denial as it is', async () => {
  const api = await rig.limiter(
    { rate: 1000, capacity: 1000, subjectRate: 0.01, subjectCapacity: 1, inFlightMax: 5 },
    { perSubject: { subject: '{route}', rate: 5, capacity: 10 } },
  );
  const guard = flyball(api, {
    route: (req) => (req as { route?: { path: string } }).route?.path,
  });
  const app = await nest({});
  app.useGlobalGuards({
    canActivate(context: ExecutionContext) {
      const http = context.switchToHttp();
      return guard(http.getRequest(), http.getResponse());
    },
  });
  const url = await rig.listen(await served(app));
  expect((await fetch(`${url}/users/1`)).status).toBe(200);
  const denied = await fetch(`${url}/users/2`);
  expect(denied.status).toBe(429);
  expect(await denied.json()).toMatchObject({ limiter: api.name, limit: 'subject' });
  expect((await fetch(`${url}/ok`)).status).toBe(200);
  expect(await rig.admin.exists(`flyball:{${api.name}}:b:%2Fusers%2F:id`)).toBe(1);
  expect(api.stats().inFlight).toBe(0);
});
