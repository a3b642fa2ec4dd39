/** A Cluster client whose commands wait no longer than those of a single server, and are never sent twice. Stage: all that touch Redis. */
import { Cluster, type Command, type RedisOptions } from 'ioredis';
import type { HostPort } from './url.js';

/** A node that moved a slot away, or has part of its keys: asked again so often within one command. */
const MAX_REDIRECTIONS = 16;
/** While a slot moves, keys of one call can lie on two nodes for a moment. */
const TRY_AGAIN_MS = 10;
const SLOTS_TIMEOUT_MS = 2_000;

export interface ClusterPlace {
  nodes: readonly HostPort[];
  /** For each node. */
  node: RedisOptions;
  retryMs: (attempt: number) => number;
  /** Longest wait for a reply, from the call on; undefined: the caller keeps the time. */
  commandTimeoutMs: number | undefined;
}

/**
 * ioredis holds commands of a cluster that is not connected in a queue without end, and sends what was under way on
 * a broken connection again. Here the first are bounded, and nothing that may have taken effect is repeated:
 * only `MOVED`, `ASK` and `TRYAGAIN` are followed, since the node that says so has done nothing.
 */
export function createCluster(place: ClusterPlace): Cluster {
  const { node, retryMs, commandTimeoutMs } = place;
  const Bounded = commandTimeoutMs === undefined ? Cluster : boundedCluster(commandTimeoutMs);
  return new Bounded([...place.nodes], {
    redisOptions: node,
    clusterRetryStrategy: retryMs,
    maxRedirections: MAX_REDIRECTIONS,
    retryDelayOnTryAgain: TRY_AGAIN_MS,
    // 0: what was under way fails; the next command finds the new master.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: SLOTS_TIMEOUT_MS,
    // A certificate is for a name: it must not be lost on the way to the address.
    ...(node.tls === undefined ? {} : { dnsLookup: (name, told) => told(null, name) }),
  });
}

function boundedCluster(timeoutMs: number): typeof Cluster {
  return class BoundedCluster extends Cluster {
    override sendCommand(command: Command, ...rest: [stream?: never, node?: unknown]): unknown {
      // Its wait was over while the cluster was away: sent now it would take effect behind the caller's back.
      if (command.isSettled && rest[0] === undefined) return command.promise;
      command.setTimeout(timeoutMs);
      return super.sendCommand(command, ...rest);
    }
  } as typeof Cluster;
}
