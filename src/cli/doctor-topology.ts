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
    return clusterFinding(state, redis.nodes('master').length, redis.nodes('slave').length);
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

export function clusterFinding(info: string, masters: number, replicas: number): Finding {
  const state = infoField(info, 'cluster_state');
  const slots = infoField(info, 'cluster_slots_ok') ?? '?';
  const message = `cluster of ${count(masters, 'master')} and ${count(replicas, 'replica')}, state ${state ?? '?'}, ${slots} of 16384 slots served`;
  if (state !== 'ok') {
    const mend = 'Look at CLUSTER NODES: slots without a master are answered by onRedisError.';
    return { check: 'topology', status: 'fail', message, mend };
  }
  if (replicas < masters) return { check: 'topology', status: 'warn', message, mend: NO_REPLICA };
  return { check: 'topology', status: 'ok', message };
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
