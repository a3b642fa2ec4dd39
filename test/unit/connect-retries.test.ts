/** C38: what a client does after a lost connection or READONLY: it connects anew, and never waits a second to do so. */
import { Cluster, type Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { type ConnectOptions, connect } from '../../src/redis/connect.js';
import { tempFolder } from '../support/temp-folder.js';

/** Longest between two attempts, so that a Redis that is back is used within a second. */
const LONGEST_MS = 800;

type Place = Pick<ConnectOptions, 'url' | 'embeddedIn'>;
// Nothing listens there, and nothing is waited for.
const places: [string, Place][] = [
  ['a server', { url: 'redis://127.0.0.1:1' }],
  ['Sentinel', { url: 'redis+sentinel://127.0.0.1:1/limits' }],
  ['a Cluster', { url: 'redis+cluster://127.0.0.1:1' }],
  ['the embedded one', { embeddedIn: tempFolder('retries') }],
];
const callers = [
  ['sdk', true],
  ['daemon', false],
] as const;

test.each(
  places.flatMap(([what, place]) => callers.map((caller) => [what, ...caller, place] as const)),
)('C38: %s, %s: attempts go on for ever, at most 0.8 s apart', (_what, name, hotPath, place) => {
  const redis = connect({ ...place, name, hotPath, env: {} });
  redis.on('error', () => {});
  redis.disconnect();
  const { retries, reconnectOnError } = strategiesOf(redis);
  expect(retries.length).toBeGreaterThan(0);
  for (const retryMs of retries) {
    for (const attempt of [1, 2, 10, 16, 17, 1_000, 1e9]) {
      expect(retryMs(attempt)).toBeGreaterThan(0);
      expect(retryMs(attempt)).toBeLessThanOrEqual(LONGEST_MS);
    }
  }
  for (const said of ["READONLY You can't write against a read only replica.", 'ERR READONLY x']) {
    expect(reconnectOnError(new Error(said)), said).toBe(true);
  }
  // The command itself is not sent again: it may have taken effect.
  expect(reconnectOnError(new Error('ERR unknown command'))).toBe(false);
});

type Retry = (attempt: number) => unknown;

/** As the client was given them, whichever kind it is. */
function strategiesOf(redis: ReturnType<typeof connect>) {
  if (redis instanceof Cluster) {
    const { clusterRetryStrategy, redisOptions } = redis.options;
    return {
      retries: [clusterRetryStrategy as Retry],
      reconnectOnError: redisOptions!.reconnectOnError!,
    };
  }
  const { retryStrategy, sentinelRetryStrategy, sentinels, reconnectOnError } = (redis as Redis)
    .options;
  return {
    retries: [retryStrategy as Retry, ...(sentinels ? [sentinelRetryStrategy as Retry] : [])],
    reconnectOnError: reconnectOnError!,
  };
}
