import { expect, test } from 'vitest';
import { gatherWrites } from '../../src/redis/gather-writes.js';
import { startRedis } from '../support/redis-server.js';

test('commands of one turn leave in one write and in order, on each connection anew', async () => {
  const server = await startRedis();
  try {
    const redis = server.client({ retryStrategy: () => 10, maxRetriesPerRequest: null });
    gatherWrites(redis);
    await redis.ping();
    const burst = async () => {
      const sent: number[] = [];
      const { stream } = redis;
      const whole = stream._writev!.bind(stream);
      stream._writev = (chunks, ok) => {
        sent.push(chunks.length);
        whole(chunks, ok);
      };
      await redis.del('list');
      sent.length = 0;
      const lengths = await Promise.all(
        Array.from({ length: 50 }, (_, i) => redis.rpush('list', `é${i}`)),
      );
      expect(lengths).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
      expect(await redis.lrange('list', 48, 49)).toEqual(['é48', 'é49']);
      expect(sent.length).toBe(1);
      expect(sent[0]).toBeGreaterThanOrEqual(50);
    };
    await burst();
    const again = new Promise((ok) => redis.once('ready', ok));
    redis.disconnect(true);
    await again;
    await burst();
    expect(await redis.quit()).toBe('OK');
  } finally {
    await server.stop();
  }
});
