/**
 * A checkout service in front of PostgreSQL and a payment upstream: hold the response time, watch the
 * database's queue, and stop for a moment when the upstream fails. The demo (`npm start`) runs this file.
 */
import { adaptive, definePolicy, env, postgres, telemetry, upstreamErrors } from 'flyball';

export default definePolicy({
  limiter: {
    name: 'checkout',
    // Fleet-wide totals. The database's knee is near 100 requests/s with 10 connections.
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
    // A checkout alone takes 120 ms, and 240 ms when the database is at half speed: below that no limit helps.
    p95: { below: '350ms' },
    errors: { below: '1%' },
    dbWait: { below: 5 },
  },
  control: adaptive(),
  bounds: { rate: { min: 20, max: 400 }, inFlight: { min: 2, max: 64 } },
  // Probes cost little here, and a minute without payments costs much: look again at least every 15 s.
  breaker: {
    on: 'upstream',
    above: 20,
    per: '5s',
    openFor: '3s',
    openForMax: '15s',
    probeRate: 2,
  },
  onRedisError: 'local',
  mode: 'auto',
});
