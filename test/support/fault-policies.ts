/** The policies of fault schedules: one that moves in auto with a breaker, and one that only watches. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { policyHash } from '../../src/policy/hash.js';
import { policySchema } from '../../src/policy/schema.js';

export const OWN = { rate: 60, capacity: 30 };
/** Under `draw: 'block'` all is so much more: of less a block is not worth its call. */
const BLOCK_SCALE = 6;

export const scaleOf = (draw: PolicyChoices['draw']) => (draw === 'block' ? BLOCK_SCALE : 1);

/** What services pass along for a Redis without params: the numbers of the policy. */
export function ownOf(draw: PolicyChoices['draw']) {
  return { rate: OWN.rate * scaleOf(draw), capacity: OWN.capacity * scaleOf(draw) };
}

export const MOVED = 'checkout';
export const WATCHED = 'watched';

export interface PolicyChoices {
  law: 'adaptive' | 'aimd';
  second: 'shadow' | 'recommend';
  draw: 'each' | 'block';
  onRedisError: 'local' | 'closed';
  /** A `/metrics` page with a gauge that schedules make lie. */
  page: string;
  /** How much slower than usual daemons tick. */
  pace: number;
}

/** @param maxRate two daemons may be given different ones */
export function movedPolicy(choices: PolicyChoices, maxRate = 120) {
  const scale = scaleOf(choices.draw);
  return {
    limiter: {
      name: MOVED,
      ...ownOf(choices.draw),
      inFlightMax: 20,
      draw: choices.draw,
      coldStart: 'full',
    },
    signals: {
      p95: { source: 'telemetry', stat: 'latency', of: 0.95 },
      errors: { source: 'telemetry', stat: 'errorRatio' },
      inARow: { source: 'telemetry', stat: 'failuresInARow' },
      queue: { source: 'scrape', stat: 'gauge', url: choices.page, metric: 'queue_depth' },
    },
    objective: { p95: { below: '150ms' }, queue: { below: 50 } },
    control: { law: choices.law },
    bounds: { rate: { min: 10, max: maxRate * scale }, inFlight: { min: 2, max: 40 } },
    breaker: {
      ...{ on: 'errors', above: 0.5, or: [{ on: 'inARow', above: 12 }] },
      ...{ openFor: '600ms', openForMax: '1s', probeRate: 10, successes: 2, probeDeadline: '2s' },
    },
    guards: { cooldown: '200ms', changesPerMinute: 600 },
    whenLost: { after: 1500 * choices.pace, over: '500ms', rate: 30 * scale, inFlight: 8 },
    onFailover: { factor: 0.5, for: '600ms' },
    onRedisError: choices.onRedisError,
    mode: 'auto',
  };
}

export function watchedPolicy({ second }: PolicyChoices) {
  return {
    limiter: { name: WATCHED, rate: 15, capacity: 8 },
    signals: { p95: { source: 'telemetry', stat: 'latency', of: 0.95 } },
    objective: { p95: { below: '20ms' } },
    control: { law: 'aimd' },
    bounds: { rate: { min: 5, max: 40 } },
    onRedisError: 'local',
    mode: second,
  };
}

/** Writes each into its file, as plain data; returns the hashes that may ever be in force. */
export function writePolicies(folder: string, policies: readonly object[]): string[] {
  mkdirSync(folder, { recursive: true });
  return policies.map((policy) => {
    const parsed = policySchema.parse(policy);
    writeFileSync(
      join(folder, `${parsed.limiter.name}.ts`),
      `import { definePolicy } from 'flyball';\nexport default definePolicy(${JSON.stringify(policy)});\n`,
    );
    return policyHash(parsed);
  });
}
