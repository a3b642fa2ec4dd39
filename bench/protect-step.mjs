/** The step rule before the demo's checkout: the same signals and objectives as `policies/checkout.ts`, another law. */
import { definePolicy, env, postgres, step, telemetry, upstreamErrors } from 'flyball';

export default definePolicy({
  limiter: {
    name: 'checkout',
    rate: 100,
    capacity: 50,
    inFlightMax: 24,
    routes: ['POST /checkout'],
  },
  signals: {
    p95: telemetry.latency('p95'),
    errors: telemetry.errorRatio(),
    dbWait: postgres.waiting({ url: env('DATABASE_URL') }),
    upstream: upstreamErrors('SYSTEMERROR'),
  },
  objective: {
    p95: { below: '350ms' },
    errors: { below: '1%' },
    dbWait: { below: 5 },
  },
  control: step(),
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  breaker: { on: 'upstream', above: 20, per: '5s', openFor: '3s', probeRate: 2 },
  onRedisError: 'local',
  mode: 'auto',
});
