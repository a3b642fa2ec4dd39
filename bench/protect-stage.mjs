/** What the bench `protect` runs on: PostgreSQL, Redis, the demo's upstream, checkout and load, each a process. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openCheckoutDatabase } from '../dist/demo/database.js';
import { awaitAdopted, LIMITER } from '../dist/demo/limiter-view.js';
import { startPostgres } from '../dist/demo/postgres.js';
import { createProcesses } from '../dist/demo/processes.js';
import { startRedis } from './redis.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const POLICIES = {
  flyball: join(ROOT, 'policies/checkout.ts'),
  step: join(ROOT, 'bench/protect-step.mjs'),
};
/** Between a generator's start and its first request. */
const LEAD_MS = 400;
/** What a run may take beyond its load: the generator waits up to 8 s for what is under way. */
const SLACK_MS = 20_000;

/** Everything that is started is handed to `ending`, which ends it in reverse, however the bench ends. */
export async function openProtectStage(ending) {
  const folder = mkdtempSync(join(tmpdir(), 'flyball-protect-'));
  let keepsLogs = false;
  ending.add(() => keepsLogs || rmSync(folder, { recursive: true, force: true }));
  const logDir = join(folder, 'log');
  mkdirSync(logDir);
  const redis = await startRedis();
  ending.add(() => redis.stop());
  const postgres = await startPostgres({ dir: folder });
  ending.add(() => postgres.stop());
  const database = await openCheckoutDatabase(postgres.url);
  ending.add(() => database.close());
  const processes = createProcesses(logDir, environment(folder, redis.port, postgres.url));
  ending.add(() => processes.close());
  // The error names the log of the process that died.
  processes.broken.catch(() => {
    keepsLogs = true;
  });
  const upstream = processes.start({
    name: 'payment-upstream',
    module: 'demo/payment-upstream.js',
    channel: true,
  });
  const paymentUrl = await readyUrl(upstream);
  let serviceUrl = '';

  async function readyUrl(started) {
    const ready = started.next((message) => message.type === 'ready');
    return String((await within(ready, SLACK_MS, `${started.name} to listen`)).url);
  }

  /** Rejects when it takes too long, or when a process that should live has died. */
  async function within(work, ms, what) {
    let timer;
    const late = new Promise((_ok, no) => {
      timer = setTimeout(() => no(new Error(`waited ${ms / 1000} s for ${what}`)), ms);
    });
    try {
      return await Promise.race([work, late, processes.broken]);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    database,
    /** A fresh checkout: `none`, `cap`, `flyball` as the demo knows them, or `vegas`. */
    async startService(guard) {
      const own = guard === 'vegas';
      const service = processes.start({
        name: `checkout-${guard}`,
        module: own ? '../bench/protect-vegas.mjs' : 'demo/checkout-service.js',
        channel: true,
        env: { GUARD: own ? 'cap' : guard, PAYMENT_URL: paymentUrl },
      });
      serviceUrl = await readyUrl(service);
      return service;
    },
    /** A daemon on a Redis that remembers nothing, once it has adopted its policy. */
    async startDaemon(law) {
      await redis.control.flushall();
      const daemon = processes.start({
        name: `daemon-${law}`,
        module: 'cli/main.js',
        args: ['run', POLICIES[law]],
        env: { FLYBALL_HTTP_PORT: '0' },
      });
      await within(awaitAdopted(redis.control, { name: LIMITER }), 30_000, 'a daemon to adopt');
      return daemon;
    },
    /** Runs the load on the newest service to its end; resolves to one record a second. */
    async load({ steps, seed, retry }, onSecond = () => {}) {
      const seconds = [];
      const startAtMs = Date.now() + LEAD_MS;
      const lengthMs = 1000 * steps.reduce((sum, step) => sum + step.seconds, 0);
      const generator = processes.start({
        name: 'load-generator',
        module: 'demo/load-generator.js',
        args: [JSON.stringify({ url: serviceUrl, steps, seed, retry, startAtMs })],
        channel: true,
        ends: true,
        onLine(line) {
          const second = JSON.parse(line);
          seconds.push(second);
          onSecond(second);
        },
      });
      await within(generator.closed, lengthMs + SLACK_MS, 'the load to end');
      if (seconds.length * 1000 < lengthMs) throw new Error('the load ended before its time');
      return seconds;
    },
  };
}

/** The settings of whoever runs the bench must not reach its daemons. */
function environment(folder, redisPort, databaseUrl) {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('FLYBALL_'));
  return {
    ...Object.fromEntries(own),
    FLYBALL_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    FLYBALL_DATA_DIR: folder,
    DATABASE_URL: databaseUrl,
  };
}
