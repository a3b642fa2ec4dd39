/** Requests a second of one Fastify route: without a limiter, with Flyball, with @fastify/rate-limit on Redis. */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { flyball } from '../dist/enforce/middleware/fastify.js';
import { managedLimiter } from './limiter.mjs';
import { interleaved } from './load.mjs';
import { median, target } from './report.mjs';

const ROUNDS = 7;
const MEASURE_MS = 500;
const CONNECTIONS = 64;
const LIMIT = 1e6;
const BARE = 'no limiter';
const BY_BLOCKS = 'flyball, draw block';
const PEERS = ['@fastify/rate-limit', '@fastify/rate-limit, auto-pipelined'];

export async function fastifyPart(server) {
  const limiter = await managedLimiter(server.connect(), 'http', {
    perSubject: { subject: 'u:{id}', rate: 1e5, capacity: LIMIT },
  });
  const peer = (redis) => ({
    plugin: rateLimit,
    options: {
      max: LIMIT,
      timeWindow: 1_000_000,
      redis,
      keyGenerator: (request) => request.headers['x-user'],
    },
  });
  const limited = {
    plugin: flyball,
    options: { limiter, attributes: (request) => ({ id: request.headers['x-user'] }) },
  };
  // One limit for all: of 10,000 users few are hot enough for blocks of their own.
  const drawing = await managedLimiter(server.connect(), 'drawing', {
    total: { rate: 1e6, capacity: 1e9 },
    draw: 'block',
  });
  const apps = [
    await listen(BARE, null),
    await listen('flyball', limited),
    await listen(BY_BLOCKS, { plugin: flyball, options: { limiter: drawing } }),
    await listen(PEERS[0], peer(server.connect())),
    await listen(PEERS[1], peer(server.connect({ enableAutoPipelining: true }))),
  ];
  // The load comes from a process of its own: what is measured is the server's.
  const load = fork(join(import.meta.dirname, 'http-load.mjs'), { stdio: 'inherit' });
  const ended = new Promise((_ok, no) => {
    load.once('exit', (code) => no(new Error(`bench: the load ended with ${code}`)));
  });
  ended.catch(() => {});
  const ask = (port, ms) => {
    const answer = new Promise((ok) => load.once('message', ok));
    load.send({ port, ms, connections: CONNECTIONS });
    return Promise.race([answer, ended]);
  };
  try {
    for (const { port } of apps) await ask(port, 1000);
    const runs = await interleaved(apps, ROUNDS, ({ port }) =>
      withCpu(() => ask(port, MEASURE_MS)),
    );
    return resultOf(apps, runs);
  } finally {
    load.kill();
    for (const { app } of apps) await app.close();
    await limiter.close();
    await drawing.close();
  }
}

/** CPU of this process, which serves. */
async function withCpu(ask) {
  const before = process.cpuUsage();
  const run = await ask();
  const { user, system } = process.cpuUsage(before);
  return { ...run, cpuUs: (user + system) / run.answers };
}

async function listen(name, limit) {
  const app = fastify();
  if (limit) await app.register(limit.plugin, limit.options);
  app.get('/', async () => ({ ok: true }));
  await app.listen({ port: 0, host: '127.0.0.1' });
  return { name, app, port: app.server.address().port };
}

function resultOf(apps, runs) {
  const of = (name, field) => median(runs.get(name).map((run) => run[field]));
  const against = (a, b) =>
    median(runs.get(a).map((run, i) => run.perSecond / runs.get(b)[i].perSecond));
  const faster = against(PEERS[1], PEERS[0]) > 1 ? PEERS[1] : PEERS[0];
  const bad = apps.reduce(
    (sum, { name }) => sum + runs.get(name).reduce((n, run) => n + run.bad, 0),
    0,
  );
  return {
    tables: [
      {
        title: `Fastify, ${CONNECTIONS} connections, ${ROUNDS} rounds; ${bad} answers were not 200`,
        columns: ['', 'requests/s', '÷ no limiter', 'server µs'],
        rows: apps.map(({ name }) => [
          name,
          of(name, 'perSecond'),
          against(name, BARE),
          of(name, 'cpuUs'),
        ]),
      },
    ],
    targets: [
      target('Fastify: requests/s kept, exact', against('flyball', BARE), '>=', 0.75),
      target('Fastify: requests/s kept, by blocks', against(BY_BLOCKS, BARE), '>=', 0.9),
      target(
        `Fastify: requests/s ÷ the better setting (${faster})`,
        against('flyball', faster),
        '>=',
        1.15,
      ),
    ],
  };
}
