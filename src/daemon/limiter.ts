/** One limiter's turn: sense, estimate, then lead (decide, guard, write or beat) or watch while another leads. Stage: daemon. */
import { type RedisClient, readParamsAnyhow } from '../actuate/actuator.js';
import { type AdoptOutcome, adopt, type LoadedPolicy } from '../actuate/adopt.js';
import { createLease } from '../actuate/lease.js';
import type { Clock } from '../clock.js';
import { createEstimateState, type EstimateState, estimate } from '../estimate/estimate.js';
import type { Logger } from '../log.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { isOlder } from '../redis/write-order.js';
import type { Metrics } from '../report/metrics.js';
import { reportInForce } from '../report/tick-metrics.js';
import { createSampler, type Sampler } from '../sense/sampler.js';
import { readAdopted } from './adopted.js';
import { createHistory } from './history.js';
import { createLeader } from './leader.js';
import { inForceView } from './view.js';
import { createWriter } from './writer.js';

export interface LimiterDeps {
  redis: RedisClient;
  address: LimiterAddress;
  /** `host:pid:random` of this daemon. */
  owner: string;
  tickMs: number;
  leaseMs: number;
  clock: Clock;
  env: NodeJS.ProcessEnv;
  log: Logger;
  metrics: Metrics;
  /** Where the file here stands to the adopted policy, and what is wrong with files: for the status key. */
  fileState: (adoptedHash: string) => {
    file: 'same' | 'drift' | 'pending' | 'none';
    faults: string[];
  };
}

export interface ManagedLimiter {
  readonly address: LimiterAddress;
  /** The hash of the adopted policy, once it has been read. */
  readonly adoptedHash: string | null;
  /** A name in the registry and no more, as the last turn saw it: no params, and no policy to make them from. */
  readonly empty: boolean;
  /** Does this daemon hold the lease, as far as it knows? */
  readonly leads: boolean;
  /** One turn. Never called while the last one runs. */
  tick(): Promise<void>;
  /** What is done by schedule, if it is overdue and this daemon leads. Never rejects. */
  runJobs(): Promise<void>;
  /** Adopt this policy at the next turn: its file has changed. */
  offer(loaded: LoadedPolicy): void;
  /** Ends the sampler and gives the lease back. */
  close(): Promise<void>;
}

/** `adopted` is what start adopted or found; null: it is read at the first turn. */
export function createManagedLimiter(
  deps: LimiterDeps,
  found: LoadedPolicy | null,
): ManagedLimiter {
  const { redis, address, owner, tickMs, leaseMs, clock, env, log, metrics } = deps;
  const limiter = address.name;
  const lease = createLease({ redis, address, owner, leaseMs });
  const writer = createWriter({ redis, address, lease, leaseMs, clock, log, metrics });
  const history = createHistory({ redis, address, clock, log });
  const leader = createLeader({ ...deps, writer, lease, history });
  let adopted = found;
  let sampler: Sampler | null = null;
  let estimates: EstimateState = createEstimateState();
  let offered: LoadedPolicy | null = null;
  let lastParams: Params | null = null;
  let lastTickMs: number | null = null;
  let empty = false;

  async function tick(): Promise<void> {
    const startMs = clock.monotonicMs();
    const dtMs = lastTickMs === null ? tickMs : startMs - lastTickMs;
    lastTickMs = startMs;
    try {
      await turnOnce(dtMs);
    } finally {
      metrics.leaseHeld.set({ limiter }, lease.token === null ? 0 : 1);
      metrics.fence.set({ limiter }, lease.token ?? 0);
      metrics.tickDuration.observe({ limiter }, (clock.monotonicMs() - startMs) / 1000);
    }
  }

  async function turnOnce(dtMs: number): Promise<void> {
    if (lease.token === null) await takeLease();
    if (offered !== null) await adoptOffered(offered);
    const seen = await readParamsAnyhow(redis, address);
    if (seen.params !== null) await follow(seen.params.policyHash);
    empty = adopted === null && seen.params === null && seen.unreadable === null;
    if (adopted === null) return;
    sampler ??= createSampler({ redis, policy: adopted.policy, address, clock, env, log });
    const readings = await sampler.read();
    const estimated = estimate(adopted.policy, estimates, readings, dtMs);
    estimates = estimated.state;

    // Read again: sources may have taken most of a second, and a person may have written meanwhile.
    const { params, nowUs, unreadable } = await readParamsAnyhow(redis, address);
    if (unreadable !== null) log.error({ event: 'params_unreadable', limiter }, unreadable.message);
    if (params === null) return restore(adopted);
    const last = lastParams;
    if (last === null || !isOlder(params, last)) lastParams = params;
    const { view } = inForceView(params, nowUs / 1000, null);
    reportInForce(metrics, limiter, view);
    if (params.policyHash !== adopted.hash || lease.token === null) return;
    await leader.lead(adopted, params, nowUs, estimated.estimates, dtMs, last);
  }

  async function takeLease(): Promise<void> {
    const before = lease.token;
    const reply = await lease.acquire();
    if (reply.status !== 'held' || reply.token === before) return;
    log.info(
      { event: 'lease_taken', limiter, fence: reply.token },
      `${owner} leads ${limiter} from now on.`,
    );
    await leader.takeOver(adopted);
  }

  /** The adopted policy may have been changed by anyone: sources and windows follow it. */
  async function follow(hash: string): Promise<void> {
    if (adopted?.hash === hash) return;
    const next = await readAdopted(redis, address, hash);
    if (next === null) {
      if (adopted === null) return;
      log.warn(
        { event: 'policy_missing', limiter },
        `The adopted policy ${hash.slice(0, 12)} of ${limiter} is not in Redis; the last one known is kept.`,
      );
      adopted = { ...adopted, hash };
      return;
    }
    const sameSignals =
      adopted !== null &&
      JSON.stringify(adopted.policy.signals) === JSON.stringify(next.policy.signals) &&
      adopted.policy.limiter.name === next.policy.limiter.name;
    if (!sameSignals) estimates = createEstimateState();
    await sampler?.close();
    sampler = null;
    adopted = next;
    if (lease.token !== null) await leader.takeOver(adopted);
  }

  async function adoptOffered(loaded: LoadedPolicy): Promise<void> {
    const outcome = await adopt(redis, loaded, adoptOptions());
    if (outcome.status === 'refused' && outcome.reason === 'write') {
      const { reply } = outcome;
      // Someone else wrote in between: the next turn tries again from what is then in force.
      if (reply.status === 'refused' && reply.reason === 'revision') return;
      if (reply.status === 'refused' && reply.reason === 'lease') return lease.lost();
    }
    if (offered === loaded) offered = null;
    logAdoption(log, limiter, loaded, outcome);
    if (outcome.status === 'changed' || outcome.status === 'created') {
      metrics.changes.inc({ limiter, reason: `policy_${outcome.status}` });
    }
  }

  /** Redis lost the params (FLUSHALL, eviction, a new server): they come back within a turn, and only by the owner. */
  async function restore(policy: LoadedPolicy): Promise<void> {
    // A flush took the lease key along: what is held here is a memory. One that is still ours is renewed.
    await takeLease();
    if (lease.token === null) return;
    const outcome = await adopt(redis, policy, { ...adoptOptions(), last: lastParams });
    logAdoption(log, limiter, policy, outcome);
    if (outcome.status === 'restored' || outcome.status === 'created') {
      metrics.changes.inc({ limiter, reason: `params_${outcome.status}` });
    }
  }

  function adoptOptions() {
    const authority = lease.authority();
    return {
      ...(authority === null ? {} : { authority }),
      actor: { kind: 'autopilot' as const, name: owner },
      leaseMs,
      nowMs: clock.nowMs(),
      prefix: address.prefix,
    };
  }

  return {
    address,
    get adoptedHash() {
      return adopted?.hash ?? null;
    },
    get empty() {
      return empty;
    },
    get leads() {
      return lease.token !== null;
    },
    tick,
    async runJobs() {
      if (adopted !== null && lease.token !== null) await leader.runJobs(adopted);
    },
    offer(loaded) {
      offered = loaded;
    },
    async close() {
      await sampler?.close();
      await history.close();
      await lease.release();
    },
  };
}

/** One line for each policy that was, or was not, adopted. */
export function logAdoption(
  log: Logger,
  limiter: string,
  loaded: LoadedPolicy,
  outcome: AdoptOutcome,
): void {
  if (outcome.status === 'unchanged') return;
  const base = { limiter, file: loaded.file, policy: loaded.hash.slice(0, 12) };
  if (outcome.status === 'refused') {
    log.error({ event: 'policy_refused', ...base }, outcome.sentence);
    return;
  }
  const { epoch, revision } = outcome;
  const reason =
    outcome.status === 'changed' ? 'policy_adopted' : (`params_${outcome.status}` as const);
  log.info({ event: 'change', ...base, epoch, revision, reason }, outcome.sentence);
}
