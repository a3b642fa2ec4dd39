/** A limiter as a daemon leaves it in Redis, for benches: params by the product's own actuator, then the SDK. */
import { write } from '../dist/actuate/actuator.js';
import { createLimiter } from '../dist/index.js';
import { paramsFromPolicy } from '../dist/policy/params.js';
import { resolvePolicy } from '../dist/testing.js';

const HOUR_MS = 3_600_000;
/** So long that a decision measured is Redis's, on a crowded machine too. */
const DEADLINE_MS = 5_000;

/** Limits so wide that they deny nothing in a bench. */
export const WIDE = { rate: 1e6, capacity: 1e6 };

export async function managedLimiter(redis, name, { total = WIDE, perSubject, group, ...options }) {
  const policy = resolvePolicy({ limiter: { name, ...total, ...(perSubject && { perSubject }) } });
  const nowMs = Date.now();
  const reply = await write(
    redis,
    group === undefined ? { name } : { name, group },
    {
      authority: { kind: 'person' },
      expected: { epoch: nowMs, revision: 1 },
      create: true,
      // No daemon renews them: they must not glide to their safe values under a long bench.
      change: { ...paramsFromPolicy(policy), policyHash: '', lostAfterMs: HOUR_MS },
      cause: 'person',
      actor: { kind: 'person', name: 'bench' },
      reason: 'bench',
      sentence: 'set by a bench',
      before: null,
      after: null,
      policyHash: '',
    },
    { leaseMs: HOUR_MS, nowMs },
  );
  if (reply.status !== 'ok') throw new Error(`bench: params refused: ${reply.reason}`);
  const limiter = createLimiter({
    name,
    redis,
    deadlineMs: DEADLINE_MS,
    ...(group !== undefined && { group }),
    ...options,
  });
  // Redis's time is learned before anything is measured.
  for (let i = 0; i < 3; i++) await limiter.peek();
  return limiter;
}
