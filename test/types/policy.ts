/** Compiled, never run: each marked line must be a compile error, and no other may be. */
import {
  adaptive,
  custom,
  definePolicy,
  env,
  fixed,
  mysql,
  postgres,
  prometheus,
  scrape,
  step,
  telemetry,
  upstream,
  upstreamErrors,
} from 'flyball';

const limiter = { name: 'checkout', rate: 100, capacity: 200 };

// All of it at once, as in the guide.
definePolicy({
  limiter: {
    ...limiter,
    inFlightMax: 24,
    perSubject: { subject: 'user:{userId}', rate: 5, capacity: 10, follow: true },
    routes: ['POST /api/pay/**'],
    reserve: { sheddable: '20%' },
  },
  signals: {
    p95: telemetry.latency('p95'),
    mean: telemetry.mean(),
    errors: telemetry.errorRatio(),
    dbWait: postgres.waiting({ url: env('DATABASE_URL'), deadlineMs: '500ms' }),
    poolTime: telemetry.dbWait(0.99),
    pool: telemetry.poolWaiting(),
    good: telemetry.goodput(),
    upstream: upstreamErrors('SYSTEMERROR', { upstream: 'pay' }),
  },
  objective: {
    p95: { below: '250ms', weight: 2, sustain: '5s' },
    mean: { below: 100 },
    errors: { below: '1%' },
    dbWait: { below: 5 },
    poolTime: { below: '50ms' },
    good: { above: 10 },
  },
  control: adaptive(),
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  breaker: { on: 'upstream', above: 100, per: '1m', openFor: '5s', probeRate: 1 },
  whenLost: { after: '1m', rate: 50 },
  onRedisError: 'local',
  mode: 'auto',
});

definePolicy({ limiter });
definePolicy({ limiter, control: fixed() });
definePolicy({ limiter, control: step({ slowAboveMs: '500ms', down: 0.8 }) });
definePolicy({
  limiter,
  signals: { errors: telemetry.errorRatio() },
  breaker: { on: 'errors', above: '50%' },
});

const signals = {
  p95: telemetry.latency('p95'),
  errors: telemetry.errorRatio(),
  dbWait: postgres.waiting({ url: env('DATABASE_URL') }),
  upstream: upstreamErrors('SYSTEMERROR'),
};
// Signals may stand apart.
definePolicy({ limiter, signals, objective: { p95: { below: '1s' } } });

// An objective of a signal that is not there.
// @ts-expect-error
definePolicy({ limiter, signals, objective: { p59: { below: '250ms' } } });
// @ts-expect-error
definePolicy({ limiter, objective: { p95: { below: '250ms' } } });

// A breaker on a signal that is not there, and on one that does not count failures.
// @ts-expect-error
definePolicy({ limiter, signals, breaker: { on: 'upstrem', above: 100 } });
// @ts-expect-error
definePolicy({ limiter, breaker: { on: 'upstream', above: 100 } });
// @ts-expect-error
definePolicy({ limiter, signals, breaker: { on: 'p95', above: 100 } });

// Any of several levels, each on a signal of its own; one upstream's breaker for several policies.
const levels = {
  ...signals,
  timeouts: telemetry.timeoutRatio(),
  slow: telemetry.slowRatio({ over: '2s' }),
  inARow: telemetry.failuresInARow(),
  bank: telemetry.errorRatio({ upstream: 'bank' }),
};
const bank = upstream('bank', {
  on: 'bank',
  above: '50%',
  or: [
    { on: 'timeouts', above: 0.2 },
    { on: 'inARow', above: 20 },
    { on: 'dbWait', above: 20, per: '10s' },
  ],
  shed: 'proportional',
});
definePolicy({ limiter, signals: levels, breaker: bank });
definePolicy({ limiter, signals: levels, breaker: { on: 'slow', above: '40%' } });
// @ts-expect-error
definePolicy({ limiter, signals, breaker: bank });
definePolicy({
  limiter,
  signals: levels,
  // @ts-expect-error
  breaker: { on: 'slow', above: '40%', or: [{ on: 'p95', above: 5 }] },
});
definePolicy({
  limiter,
  signals: levels,
  // @ts-expect-error
  breaker: { on: 'slow', above: '40%', or: [{ on: 'inARow', above: '20%' }] },
});
// @ts-expect-error
definePolicy({ limiter, signals: levels, breaker: { on: 'slow', above: '40%', shed: 'some' } });

// Levels in the wrong unit.
// @ts-expect-error
definePolicy({ limiter, signals, objective: { p95: { below: '1%' } } });
// @ts-expect-error
definePolicy({ limiter, signals, objective: { errors: { below: '250ms' } } });
// @ts-expect-error
definePolicy({ limiter, signals, objective: { dbWait: { below: '5s' } } });
// @ts-expect-error
definePolicy({ limiter, signals, breaker: { on: 'upstream', above: '50%' } });
// @ts-expect-error
definePolicy({ limiter, signals, breaker: { on: 'errors', above: '5s' } });

// A witness is another signal of the policy, with a level in its own unit; a missing signal does one of three things.
definePolicy({
  limiter,
  signals,
  objective: {
    p95: {
      below: '250ms',
      confirm: { dbWait: { above: 2 }, errors: { above: '1%' } },
      onMissing: 'ignore',
    },
  },
});
definePolicy({
  limiter,
  signals,
  // @ts-expect-error
  objective: { p95: { below: '1s', confirm: { dbWat: { above: 2 } } } },
});
definePolicy({
  limiter,
  signals,
  // @ts-expect-error
  objective: { p95: { below: '1s', confirm: { p95: { above: '1s' } } } },
});
definePolicy({
  limiter,
  signals,
  // @ts-expect-error
  objective: { p95: { below: '1s', confirm: { dbWait: { above: '1%' } } } },
});
// @ts-expect-error
definePolicy({ limiter, signals, objective: { p95: { below: '1s', onMissing: 'raise' } } });

// Neither side, both sides.
// @ts-expect-error
definePolicy({ limiter, signals, objective: { p95: {} } });
// @ts-expect-error
definePolicy({ limiter, signals, objective: { p95: { below: 1, above: 2 } } });

// Unknown fields, wrong types, missing ones.
// @ts-expect-error
definePolicy({ limiter: { name: 'checkout', rate: 100, burst: 200 } });
// @ts-expect-error
definePolicy({ limiter: { name: 'checkout', rate: '100/s', capacity: 200 } });
// @ts-expect-error
definePolicy({ limiter: { name: 'checkout', rate: 100 } });
// @ts-expect-error
definePolicy({ limiter, mode: 'automatic' });
// @ts-expect-error
definePolicy({ limiter, bounds: { rate: { min: 1 } } });
// @ts-expect-error
definePolicy({ limiter, objectives: {} });
// @ts-expect-error
definePolicy({ limiter, guards: { cooldown: '2 seconds' } });
// @ts-expect-error
definePolicy({ limiter, control: step({ faster: true }) });
// @ts-expect-error
postgres.waiting({});
// @ts-expect-error
telemetry.latency('95');

// Numbers from elsewhere are of the unit that the policy gives them.
const page = env('PAGE_URL');
definePolicy({
  limiter,
  signals: {
    queue: prometheus('sum(queue)', { url: page }),
    slow: prometheus('latency', { url: page, unit: 'seconds' }),
    bad: scrape.share(page, 'requests_total', { labels: { code: '500' }, over: {} }),
    wait: scrape.quantile(page, 'wait_seconds', 'p95', { unit: 'seconds' }),
    own: custom(async ({ signal, env }) => Number(signal.aborted) + Number(env.DEPTH), {
      unit: 'ratio',
    }),
    lag: mysql.replicaLag({ url: page }),
  },
  objective: {
    queue: { below: 5 },
    slow: { below: '250ms' },
    bad: { below: '1%' },
    wait: { below: '1s' },
    own: { below: '80%' },
    lag: { below: '5s' },
  },
});
definePolicy({
  limiter,
  signals: { queue: prometheus('sum(queue)', { url: page }) },
  // @ts-expect-error
  objective: { queue: { below: '250ms' } },
});
// A secret, a unit and a kind of wait that are none.
// @ts-expect-error
prometheus('x', { url: page, token: 'hunter2' });
// @ts-expect-error
scrape.gauge(page, 'x', { unit: 'minutes' });
// @ts-expect-error
postgres.waiting({ url: page, for: ['Locks'] });
// @ts-expect-error
custom(async () => 'seven');
