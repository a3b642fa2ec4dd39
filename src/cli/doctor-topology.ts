/** What `doctor` sees of how Redis stands: one server, a master that Sentinel names, or a cluster. Stage: cli. */
import { infoField } from '../redis/eviction.js';
import { isCluster } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import type { Finding } from './doctor-redis.js';

const NO_REPLICA =
  'Add a replica: without one nothing can take over, and onRedisError decides until it is back.';

export async function checkTopology(redis: RedisClient): Promise<Finding> {
  if (isCluster(redis)) {
    const state = String(await redis.cluster('INFO'));
    const masters = redis.nodes('master');
    const [, whole = ''] = await masters[0]!
      .call('CONFIG', 'GET', 'cluster-require-full-coverage')
      .then(pairOf)
      .catch(() => []);
    return clusterFinding(state, masters.length, redis.nodes('slave').length, whole === 'yes');
  }
  const replication = await redis.info('replication').catch(() => '');
  const replicas = Number(infoField(replication, 'connected_slaves') ?? 0);
  const { sentinels, name } = redis.options;
  if (sentinels?.length) {
    const { remoteAddress = '?', remotePort = '?' } = redis.stream as {
      remoteAddress?: string;
      remotePort?: number;
    };
    const message = `Sentinel names ${remoteAddress}:${remotePort} as master of ${JSON.stringify(name)}; ${count(replicas, 'replica')}, ${count(sentinels.length, 'Sentinel')} in the URL`;
    if (replicas === 0) {
      return { check: 'topology', status: 'warn', message, mend: NO_REPLICA };
    }
    return { check: 'topology', status: 'ok', message };
  }
  return { check: 'topology', status: 'ok', message: `one server, ${count(replicas, 'replica')}` };
}

function clusterFinding(
  info: string,
  masters: number,
  replicas: number,
  allOrNothing: boolean,
): Finding {
  const state = infoField(info, 'cluster_state');
  const slots = infoField(info, 'cluster_slots_ok') ?? '?';
  const message = `cluster of ${count(masters, 'master')} and ${count(replicas, 'replica')}, state ${state ?? '?'}, ${slots} of 16384 slots served`;
  if (state !== 'ok') {
    const mend = 'Look at CLUSTER NODES: slots without a master are answered by onRedisError.';
    return { check: 'topology', status: 'fail', message, mend };
  }
  if (allOrNothing) {
    const mend =
      'Set cluster-require-full-coverage no: with yes, a master that is away stops the limiters of all others too.';
    return { check: 'topology', status: 'warn', message, mend };
  }
  if (replicas < masters) return { check: 'topology', status: 'warn', message, mend: NO_REPLICA };
  return { check: 'topology', status: 'ok', message };
}

/** RESP3 answers with a map, RESP2 with a list. */
function pairOf(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map(String) : Object.entries(reply as object)[0]!.map(String);
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
