/** The daemon put together: policies, Redis, limiters, loop, HTTP; and taken apart in the reverse order. Stage: daemon. */
import { hostname } from 'node:os';
import { type LoadedPolicy, policyAddress } from '../actuate/adopt.js';
import { createOwnerId } from '../actuate/lease.js';
import { type Clock, systemClock } from '../clock.js';
import { PolicyError } from '../errors.js';
import type { Logger } from '../log.js';
import { fileWithCode } from '../policy/code.js';
import { downstreamWarnings } from '../policy/downstream.js';
import { upstreamWarnings } from '../policy/upstream.js';
import type { LimiterAddress } from '../redis/keys.js';
import type { HttpServer } from '../report/http.js';
import { createMetrics } from '../report/metrics.js';
import { createSourcePool } from '../sense/source-pool.js';
import { createOwnStatuses } from '../view/own-statuses.js';
import { adoptAtStart, concernsAll, waitsForApply, whileRefused } from './adoption.js';
import { createAlerts } from './alerts.js';
import { type AuditLogs, openAuditLogs } from './audit-logs.js';
import { healthChecks } from './checks.js';
import type { DaemonConfig } from './config.js';
import { registeredLimiters } from './fleet.js';
import { createSpendChange } from './fleet-budget.js';
import { createHousekeeping } from './housekeeping.js';
import { openHttp } from './http-side.js';
import { type Jobs, startJobs } from './jobs.js';
import { createManagedLimiter } from './limiter.js';
import { createLoop } from './loop.js';
import type { ManagedLimiter } from './managed-limiter.js';
import { createMembership } from './membership.js';
import { createPolicyFiles, faultsOf } from './policy-files.js';
import { openRedis } from './redis.js';
import { createServerWatch } from './server-watch.js';
import { createTurnFailures } from './turn-failures.js';

export interface DaemonOptions {
  config: DaemonConfig;
  env: NodeJS.ProcessEnv;
  log: Logger;
  /** May it start a private Redis when no URL is given? Default true. */
  embedded?: boolean;
  /** One turn of every limiter, no loop, no HTTP. */
  once?: boolean;
  clock?: Clock;
}

export interface Daemon {
  readonly owner: string;
  /** Address of the HTTP server; empty with `once`. */
  readonly http: string;
  /** Not ready → no new ticks → running turns end → leases released → HTTP closed → Redis quit. Idempotent. */
  close(): Promise<void>;
}

/** Starts in an order that leaves nothing behind when a step fails: files, Redis, HTTP, adoption, loop. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, env, log, embedded = true, once = false, clock = systemClock } = options;
  const { prefix, tickMs, leaseMs } = config;
  const owner = createOwnerId(config.name);
  const metrics = createMetrics(config.name);
  const policies = createPolicyFiles({
    paths: config.policies,
    deadlineMs: config.policyDeadlineMs,
    log,
    metrics,
  });
  await policies.load();
  if (policies.faults.length > 0) throw new PolicyError(policies.faults);

  const opened = await openRedis(config, {
    ...{ env, embedded, log, clock, metrics },
    onEvicted: (keys, eviction) => alerts.fleetAlerts.evicted(keys, eviction),
  });
  const { redis, clocks, evictions, url } = opened;
  const sources = createSourcePool({
    ...{ env, log, clock, everyMs: tickMs / 2 },
    policyFile: (code) => fileWithCode(policies.files.values(), code),
  });
  const limiters = new Map<string, ManagedLimiter>();
  const failures = createTurnFailures({ log, metrics });
  /** Files whose limiter could not be read or written at the start. */
  const unadopted = new Map<string, LoadedPolicy>();
  let closing: Promise<void> | null = null;
  let http: HttpServer | null = null;
  let jobs: Jobs | null = null;
  let audit: AuditLogs | null = null;

  const alerts = createAlerts({
    ...{ redis, prefix, owner, env, log, metrics, clock, limiters },
    facts: () => ({ redisAway: failures.redisAway(), faults: policies.faults }),
  });
  const spend = createSpendChange(redis, prefix, config.fleetBudget, log);
  const own = createOwnStatuses(clock);
  const servers = createServerWatch({ redis, everyMs: tickMs });
  const members = createMembership({
    ...{ redis, prefix, owner, leaseMs, clock, log },
    record: () => ({
      ...{ name: config.name, host: hostname(), pid: process.pid, http: http?.address ?? '' },
      leads: [...limiters.values()].filter((limiter) => limiter.leads).length,
      ...{ policyFaults: policies.faults.length, exports: audit?.exports() ?? [] },
    }),
    onChange(living) {
      metrics.daemons.set(living.length);
      log.info({ event: 'fleet', living }, `${living.length} daemon(s) live.`);
    },
  });
  metrics.daemons.set(1);

  const loop = createLoop({
    tickMs,
    clock,
    tasks: () => limiters,
    run: async (name, limiter) => {
      await limiter.tick();
      failures.worked(name);
    },
    onError: failures.failed,
    onOverrun: (limiter) => metrics.overruns.inc({ limiter }),
  });

  function manage(address: LimiterAddress): void {
    if (limiters.has(address.name)) return;
    const fileState = (hash: string, tried?: string) => stateOfFile(address.name, hash, tried);
    const given = { redis, address, owner, members, servers, tickMs, leaseMs, clock };
    const { notifier, fleetAlerts } = alerts;
    const also = { sources, clocks, evictions, spend, notifier, fleetAlerts, log, metrics };
    const limiter = createManagedLimiter({ ...given, ...also, told: own.tell, fileState });
    limiters.set(address.name, limiter);
  }

  const waits = (loaded: LoadedPolicy) => waitsForApply(config.reload, loaded);

  function stateOfFile(name: string, adoptedHash: string, tried?: string) {
    const file = policies.files.get(name);
    const faults = faultsOf(name, policies).map(
      (fault) => `${fault.file}: ${fault.field} ${fault.message}`,
    );
    if (file === undefined) return { file: 'none' as const, faults };
    const differs = waits(file) || file.hash === tried ? ('pending' as const) : ('drift' as const);
    const state = file.hash === adoptedHash ? ('same' as const) : differs;
    metrics.policyDrift.set({ limiter: name }, state === 'same' ? 0 : 1);
    return { file: state, faults };
  }

  const housekeeping = createHousekeeping({
    everyMs: config.reloadMs,
    log,
    policies,
    limiters,
    manage,
    unadopted,
    adopt: adoptFile,
    waits,
    registered: () => registeredLimiters(redis, prefix),
    prefix,
  });

  function adoptFile(loaded: LoadedPolicy): Promise<void> {
    const { reload } = config;
    return adoptAtStart(
      { redis, prefix, owner, leaseMs, nowMs: clock.nowMs(), reload, log },
      loaded,
    );
  }

  async function adoptFiles(): Promise<void> {
    for (const loaded of policies.files.values()) {
      manage(policyAddress(loaded.policy, prefix));
      try {
        await whileRefused(config.redisWaitMs, { clock, log }, () => adoptFile(loaded));
      } catch (error) {
        if (once || concernsAll(error)) throw error;
        // Of this limiter alone: the others must have their daemon.
        unadopted.set(loaded.policy.limiter.name, loaded);
        log.error(
          { event: 'adoption_failed', limiter: loaded.policy.limiter.name, err: error },
          `${loaded.file} could not be adopted: ${(error as Error).message.replace(/\.$/, '')}. It is tried again.`,
        );
      }
    }
    const all = [...policies.files.values()].map((file) => file.policy);
    for (const text of downstreamWarnings(all)) log.warn({ event: 'downstream_over' }, text);
    for (const text of upstreamWarnings(all)) log.warn({ event: 'upstream_differs' }, text);
    for (const address of await registeredLimiters(redis, prefix)) manage(address);
  }

  async function shutDown(): Promise<void> {
    housekeeping.stop();
    servers.stop();
    await loop.stop();
    await jobs?.stop();
    // First of all, so that the next in line ask for the leases by the time they are given back.
    if (!once) await members.leave();
    for (const [name, limiter] of limiters) {
      await limiter
        .close()
        .catch((error) => log.warn({ event: 'release_failed', limiter: name, err: error }));
    }
    await audit?.close();
    await alerts.close();
    await http?.close();
    await opened.close();
    log.info({ event: 'stopped' }, `${owner} has stopped.`);
  }

  function close(): Promise<void> {
    closing ??= shutDown();
    return closing;
  }

  try {
    if (!once) {
      const given = { redis, prefix, owner, leaseMs, limiters, clock, log, metrics };
      audit = await openAuditLogs({ config: config.audit, ...given });
      const auditFault = () => audit?.fault() ?? null;
      const states = { auditFault, closing: () => closing !== null };
      const checks = healthChecks({ loop, redis, policies, limiters, ...states });
      const about = { config, env, session: { redis, url, prefix }, owner, checks, own };
      http = await openHttp({ ...about, metrics, policies, clock, log });
    }
    await servers.look();
    await adoptFiles();
    log.info(
      { event: 'started', name: config.name, limiters: [...limiters.keys()], tickMs, leaseMs },
      `${owner} runs ${limiters.size} limiter(s).`,
    );
    if (once) {
      for (const limiter of limiters.values()) await limiter.tick();
    } else {
      // Before the first turn: what is another's is not asked for.
      await members.beat();
      members.start();
      servers.start();
      loop.start();
      jobs = startJobs(() => limiters.values());
      audit?.start();
      await housekeeping.start();
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    owner,
    get http() {
      return http?.address ?? '';
    },
    close,
  };
}
