/**
 * A service process for fault schedules: steady load on its limiters, work behind them that a test can make fail or
 * slow, and a log of what was decided and what Redis gave: one JSON line every 100 ms, on a clock that nobody shifts.
 */
import { appendFileSync } from 'node:fs';
import { createLimiter } from '../../dist/index.js';
import { watchWire } from './fault-wire.mjs';

const { url, name, log, wire, deadlineMs, limiters } = JSON.parse(process.argv[2]);
watchWire(wire);
const { pid } = process;
const WINDOW_MS = 100;
const BEAT_MS = 10;
const now = () => performance.timeOrigin + performance.now();
const work = { failing: false, latencyMs: 15 };
let lagMs = 0;

const loads = limiters.map(({ name: limiter, perSecond, ...numbers }) => ({
  name: limiter,
  perSecond,
  owed: Math.random(),
  inFlight: 0,
  maxMs: 0,
  counts: {},
  limiter: createLimiter({
    ...{ name: limiter, url, deadlineMs, completions: true, topSubjects: false, onWarning() {} },
    ...numbers,
  }),
}));

async function one(load) {
  const from = performance.now();
  const decision = await load.limiter.take();
  load.maxMs = Math.max(load.maxMs, performance.now() - from);
  const { allowed, wouldAllow, reason, source, epoch, revision, state } = decision;
  const key = [allowed ? 1 : 0, wouldAllow ? 1 : 0, reason, source, epoch, revision, state].join(
    '|',
  );
  load.counts[key] = (load.counts[key] ?? 0) + 1;
  if (!allowed) return;
  load.inFlight += 1;
  await new Promise((ok) => setTimeout(ok, work.latencyMs));
  load.inFlight -= 1;
  if (work.failing) decision.done('failed', { upstream: 'bank', code: 'SYSTEMERROR' });
  else decision.done('ok', { upstream: 'bank' });
}

let last = performance.now();
setInterval(() => {
  const at = performance.now();
  // All that it stood still, a breath aside.
  if (at - last > 1.5 * BEAT_MS) lagMs += at - last - BEAT_MS;
  // What did not arrive while the process stood still does not arrive in a heap afterwards.
  const seconds = Math.min(0.25, (at - last) / 1000);
  last = at;
  for (const load of loads) {
    load.owed += load.perSecond * seconds;
    for (; load.owed >= 1; load.owed -= 1) void one(load);
  }
}, BEAT_MS);

let since = now();
setInterval(() => {
  const at = now();
  const lines = loads.map((load) => {
    const { processes } = load.limiter.stats();
    const line = JSON.stringify({
      ...{
        service: name,
        pid,
        limiter: load.name,
        fromMs: since,
        atMs: at,
        maxMs: load.maxMs,
        lagMs,
      },
      ...{ inFlight: load.inFlight, processes, counts: load.counts },
    });
    load.counts = {};
    load.maxMs = 0;
    return line;
  });
  lagMs = 0;
  since = at;
  appendFileSync(log, `${lines.join('\n')}\n`);
}, WINDOW_MS);

process.on('message', (message) => Object.assign(work, message));
process.on('disconnect', () => process.exit(0));
