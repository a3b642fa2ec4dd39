/** A person writes params while a daemon leads: again, until no tick crosses it. */
import type { Redis } from 'ioredis';
import { readParams, write } from '../../src/actuate/actuator.js';
import type { LimiterAddress } from '../../src/redis/keys.js';
import type { ParamChange } from '../../src/redis/params.js';
import { until } from './daemon.js';

export async function personWrites(
  redis: Redis,
  address: LimiterAddress,
  change: ParamChange,
  reason: string,
): Promise<void> {
  await until('a write that no tick crosses', async () => {
    const seen = (await readParams(redis, address)).params!;
    const reply = await write(
      redis,
      address,
      {
        ...{ authority: { kind: 'person' }, expected: seen, change, cause: 'person' },
        ...{ actor: { kind: 'person', name: 'kim' }, reason, sentence: reason },
        ...{ before: null, after: null, policyHash: seen.policyHash },
      },
      { leaseMs: 0, nowMs: Date.now() },
    );
    return reply.status === 'ok';
  });
}
