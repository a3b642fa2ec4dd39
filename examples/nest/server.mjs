// A Nest service behind a limiter, by `flyball/http`. The numbers are used until a daemon has adopted the policy `api`.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLimiter } from 'flyball';
import { flyball } from 'flyball/http';

/** Functional middleware, before every guard, pipe and handler. */
export function limit(guard) {
  return (req, res, next) => guard(req, res).then((go) => go && next(), next);
}

// In TypeScript these are decorators: @Controller() class Hello { @Get('hello') hello() { … } }
class Hello {
  hello() {
    return { hello: 'world' };
  }
}
Get('hello')(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello'));
Controller()(Hello);
class Service {}
Module({ controllers: [Hello] })(Service);

const limiter = createLimiter({ name: 'api', rate: 100, capacity: 200, inFlightMax: 20 });
const app = await NestFactory.create(Service, { logger: ['error', 'warn'] });
app.use(limit(flyball(limiter)));
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
console.log(`http://127.0.0.1:${app.getHttpServer().address().port}`);
// The last answers first; then telemetry is sent and the in-flight share given back.
process.once('SIGTERM', () => app.close().then(() => limiter.close()));
