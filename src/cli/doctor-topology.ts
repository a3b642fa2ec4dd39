/** What `doctor` sees of how Redis stands: one server, a master that Sentinel names, or a cluster. Stage: cli. */
import type { Redis } from 'ioredis';
import { infoField } from '../redis/eviction.js';
import { isCluster } from '../redis/read-hashes.js';
import type { RedisClient } from '../redis/run-script.js';
import type { Finding } from './doctor-finding.js';

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
    // Asked of each: the cluster's own list leaves out a replica that has just come.
    const replicas = await Promise.all(masters.map(replicasOf));
    const sum = replicas.reduce((total, count) => total + count, 0);
    return clusterFinding(state, masters.length, sum, whole === 'yes');
  }
  const replicas = await replicasOf(redis);
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

async function replicasOf(server: Redis): Promise<number> {
  const replication = await server.info('replication').catch(() => '');
  return Number(infoField(replication, 'connected_slaves') ?? 0);
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
