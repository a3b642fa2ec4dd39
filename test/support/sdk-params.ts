/** Writes the params of a limiter as a daemon or a person would, for tests of the SDK. */
import type { Redis } from 'ioredis';
import { readParams, write } from '../../src/actuate/actuator.js';
import type { ActuateCall } from '../../src/redis/calls.js';
import type { LimiterAddress } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { CREATED } from './cli-params.js';

/** Bounds that refuse nothing, and no glide while a test runs. */
const WIDE = {
  minRate: 0.001,
  maxRate: 1e6,
  minCapacity: 1,
  maxCapacity: 1e6,
  minInFlight: 1,
  maxInFlight: 1e6,
  lostAfterMs: 3_600_000,
} satisfies ParamChange;

/** Creates the params, or changes them; what is not given keeps its value. */
export async function setParams(
  redis: Redis,
  address: LimiterAddress,
  change: ParamChange,
  cause: ActuateCall['cause'] = 'person',
): Promise<{ epoch: number; revision: number }> {
  const { params, nowUs } = await readParams(redis, address);
  const nowMs = Math.floor(nowUs / 1000);
  const created = params === null;
  const reply = await write(
    redis,
    address,
    {
      authority: { kind: 'person' },
      expected: params
        ? { epoch: params.epoch, revision: params.revision }
        : { epoch: nowMs, revision: 1 },
      ...(created ? { create: true } : {}),
      change: created ? { ...CREATED, ...WIDE, ...change } : change,
      cause,
      actor: { kind: 'person', name: 'test' },
      reason: 'test',
      sentence: 'set by a test',
      before: null,
      after: null,
      policyHash: CREATED.policyHash,
    },
    { leaseMs: 3_600_000, nowMs },
  );
  if (reply.status !== 'ok') throw new Error(`params refused: ${reply.reason} ${reply.detail}`);
  return { epoch: reply.epoch, revision: reply.revision };
}

/** Poll until `holds`, or fail with what was waited for. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  deadlineMs = 20_000,
): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`not within ${deadlineMs} ms: ${what}`);
    await new Promise((ok) => setTimeout(ok, 10));
  }
}
