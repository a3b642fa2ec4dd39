/** One limiter's turn: sense, estimate, then lead (decide, guard, write or beat) or watch while another leads. Stage: daemon. */
import { adopt, type LoadedPolicy } from '../actuate/adopt.js';
import { readAdopted } from '../actuate/adopted-policy.js';
import { adoptOrTry } from '../actuate/canary.js';
import { createLease } from '../actuate/lease.js';
import { createEstimateState, type EstimateState, estimate } from '../estimate/estimate.js';
import type { Params } from '../redis/params.js';
import { createParamsReader } from '../redis/reread-params.js';
import { isOlder } from '../redis/write-order.js';
import { reportInForce, reportLease } from '../report/tick-metrics.js';
import { createSampler, type Sampler } from '../sense/sampler.js';
import { logAdoption } from './adoption-log.js';
import { createCanaryWatch } from './canary-watch.js';
import { createClockHold } from './clock-hold.js';
import { createDuty } from './duty.js';
import { createHistory } from './history.js';
import { createLeader } from './leader.js';
import type { LimiterDeps, ManagedLimiter } from './managed-limiter.js';
import { inForceView } from './view.js';
import { createWriter } from './writer.js';

export function createManagedLimiter(deps: LimiterDeps): ManagedLimiter {
  const { redis, address, owner, tickMs, leaseMs, clock, sources, log, metrics } = deps;
  const limiter = address.name;
  const lease = createLease({ redis, address, owner, leaseMs });
  const onLeaseLost = (fence: number, detail: string) =>
    deps.fleetAlerts.leaseLost(limiter, fence, detail);
  const writer = createWriter({ redis, address, lease, leaseMs, clock, log, metrics, onLeaseLost });
  const history = createHistory({ redis, address, clock, log });
  const clockHold = createClockHold(deps.clocks);
  const leader = createLeader({ ...deps, writer, lease, history, clockHold });
  const canary = createCanaryWatch({ ...deps, lease });
  const readParams = createParamsReader(redis, address);
  const duty = createDuty({ limiter, leaseMs, clock, members: deps.members });
  /** Read at the first turn. */
  let adopted: LoadedPolicy | null = null;
  let sampler: Sampler | null = null;
  let estimates: EstimateState = createEstimateState();
  let offered: LoadedPolicy | null = null;
  let lastParams: Params | null = null;
  let lastTickMs: number | null = null;
  let empty = false;

  async function tick(): Promise<void> {
    const startMs = clock.monotonicMs();
    try {
      await turnOnce(startMs);
    } finally {
      reportLease(metrics, limiter, lease.token);
      metrics.tickDuration.observe({ limiter }, (clock.monotonicMs() - startMs) / 1000);
    }
  }

  async function turnOnce(startMs: number): Promise<void> {
    if (lease.token === null && duty.mayTake()) await takeLease();
    if (offered !== null) await adoptOffered(offered);
    if (lease.token === null && !duty.lookDue()) return;
    if (watches()) return watch();
    if (adopted === null) await findAdopted();
    if (adopted === null) return;
    sampler ??= openSampler(adopted);
    const dtMs = lastTickMs === null ? tickMs : startMs - lastTickMs;
    lastTickMs = startMs;
    const readings = await sampler.read();
    clockHold.see(readings.telemetry);
    const estimated = estimate(adopted.policy, estimates, readings, dtMs);
    estimates = estimated.state;

    // Read last: sources may have taken a while, and a person may have written meanwhile.
    const { params, nowUs, unreadable } = await readParams();
    deps.clocks.notice(nowUs / 1000);
    if (unreadable !== null) log.error({ event: 'params_unreadable', limiter }, unreadable.message);
    duty.saw(params !== null && params.validUntil * 1000 > nowUs);
    if (params === null) return restore(adopted);
    const last = lastParams;
    if (last === null || !isOlder(params, last)) lastParams = params;
    const { view } = inForceView(params, nowUs / 1000, null);
    reportInForce(metrics, limiter, view);
    // An adoption that was lost is put back by who leads, not followed back.
    const lost = last !== null && isOlder(params, last) && last.policyHash === adopted.hash;
    if (!lost && params.policyHash !== adopted.hash) return follow(params.policyHash);
    if (lease.token === null) return;
    if (await canary.act(params, nowUs)) return;
    const sensed = { estimates: estimated.estimates, readings };
    await leader.lead(adopted, params, nowUs, sensed, dtMs, last);
    if (duty.handsOver()) await handOver();
  }

  function watches(): boolean {
    return lease.token === null && duty.watches();
  }

  async function watch(): Promise<void> {
    // What was seen until now would be old by the time it is needed again.
    await sampler?.close();
    sampler = null;
    estimates = createEstimateState();
    lastTickMs = null;
    const { params, nowUs } = await readParams();
    duty.saw(params !== null && params.validUntil * 1000 > nowUs);
    if (params !== null)
      reportInForce(metrics, limiter, inForceView(params, nowUs / 1000, null).view);
  }

  /** This turn's checkpoint is stored: who is next goes on from it within a tick. */
  async function handOver(): Promise<void> {
    const fence = lease.token ?? 0;
    await lease.release();
    duty.gave();
    metrics.handovers.inc({ limiter });
    log.info(
      { event: 'lease_handed_over', limiter, fence },
      `${owner} hands ${limiter} over: another daemon lives whose it is.`,
    );
  }

  async function takeLease(): Promise<void> {
    const before = lease.token;
    const reply = await lease.acquire();
    if (reply.status !== 'held' || reply.token === before) return;
    duty.took();
    log.info(
      { event: 'lease_taken', limiter, fence: reply.token },
      `${owner} leads ${limiter} from now on.`,
    );
    await leader.takeOver(adopted);
  }

  async function findAdopted(): Promise<void> {
    const { params, unreadable } = await readParams();
    if (params !== null) await follow(params.policyHash);
    empty = adopted === null && params === null && unreadable === null;
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
    adopted = next;
    if (!sameSignals) {
      estimates = createEstimateState();
      // Opened before the old one is closed: a source that both read stays open.
      const before = sampler;
      sampler = openSampler(next);
      await before?.close();
    }
    if (lease.token !== null) await leader.takeOver(adopted);
  }

  function openSampler({ policy }: LoadedPolicy): Sampler {
    const patienceMs = Math.min(100, tickMs / 10);
    return createSampler({ redis, policy, address, clock, sources, patienceMs });
  }

  async function adoptOffered(loaded: LoadedPolicy): Promise<void> {
    const outcome = await adoptOrTry(redis, loaded, adoptOptions());
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
    if (lease.token !== null || duty.mayTake()) await takeLease();
    if (lease.token === null) return;
    const outcome = await adopt(redis, policy, { ...adoptOptions(), last: lastParams });
    logAdoption(log, limiter, policy, outcome);
    if (outcome.status === 'restored' || outcome.status === 'created') {
      await leader.restored();
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
    get notify() {
      return adopted?.policy.notify ?? [];
    },
    get leads() {
      return lease.token !== null;
    },
    get watches() {
      return watches();
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
