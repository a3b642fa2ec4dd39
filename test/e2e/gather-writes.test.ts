import { Cluster, type Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { gatherWrites, inOneWrite } from '../../src/redis/gather-writes.js';
import { inflightScript, reportScript } from '../../src/redis/scripts.gen.js';
import { startRedis } from '../support/redis-server.js';
import { until } from '../support/sdk-params.js';

/** The texts that leave through a connection from now on, one a write. */
function writesOf({ stream }: Redis): string[] {
  const writes: string[] = [];
  const { _write, _writev } = stream;
  stream._write = (chunk, encoding, ok) => {
    writes.push(String(chunk));
    _write.call(stream, chunk, encoding, ok);
  };
  stream._writev = (chunks, ok) => {
    writes.push(chunks.map(({ chunk }) => String(chunk)).join(''));
    _writev!.call(stream, chunks, ok);
  };
  return writes;
}

test('what is sent together leaves in one write, whatever throws meanwhile; what follows does not wait', async () => {
  const server = await startRedis();
  try {
    const redis = server.client();
    await redis.ping();
    const writes = writesOf(redis);
    const [a, b] = inOneWrite(redis, () => [redis.echo('a'), redis.pipeline().echo('b').exec()]);
    expect(writes).toHaveLength(1);
    const c = redis.echo('c');
    expect(await a).toBe('a');
    expect(await b).toEqual([[null, 'b']]);
    expect(await c).toBe('c');
    expect(() =>
      inOneWrite(redis, () => {
        void redis.echo('d');
        throw new Error('no');
      }),
    ).toThrow('no');
    expect(await redis.echo('e')).toBe('e');
    expect(writes).toHaveLength(4);
    // Not connected yet: nothing to hold back.
    const later = server.client({ lazyConnect: true });
    expect(await inOneWrite(later, () => later.echo('f'))).toBe('f');
  } finally {
    await server.stop();
  }
});

test('through a Cluster what goes to one node is one write', async () => {
  const server = await startRedis([
    '--cluster-enabled',
    'yes',
    '--cluster-announce-ip',
    '127.0.0.1',
  ]);
  let cluster: Cluster | undefined;
  try {
    const admin = server.client({ enableReadyCheck: false });
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await until('the cluster is up', async () =>
      String(await admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
    );
    const client = new Cluster([{ host: '127.0.0.1', port: server.port }]);
    cluster = client;
    await client.set('a', '1');
    const [node] = client.nodes('master');
    const writes = writesOf(node!);
    const answers = inOneWrite(client, () => [client.get('a'), client.get('b')]);
    expect(await Promise.all(answers)).toEqual(['1', null]);
    expect(writes).toHaveLength(1);
  } finally {
    cluster?.disconnect();
    await server.stop();
  }
});

test('all that a limiter tells and asks in a beat is one write', async () => {
  const server = await startRedis();
  try {
    const redis = server.client();
    await redis.ping();
    const writes = writesOf(redis);
    const limiter = createLimiter({
      name: 'beat',
      redis,
      rate: 10,
      capacity: 10,
      deadlineMs: 5_000,
      onWarning: () => {},
    });
    const together = (text: string) =>
      [reportScript.sha, 'hgetall', inflightScript.sha].every((part) => text.includes(part));
    await until('a beat', () => writes.some(together));
    await limiter.close();
  } finally {
    await server.stop();
  }
});

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
