/** Puts the parts of one limiter together. Stage: enforce. */
import { createKeyFinder } from './address.js';
import { createAdoptedTerms } from './adopted-terms.js';
import { startBeat } from './beat.js';
import { createBlocks } from './blocks.js';
import { openConnection } from './connection.js';
import { createDecider } from './decider.js';
import type { Finish } from './decision.js';
import { createDenyCache, NO_DENY_CACHE } from './deny-cache.js';
import { createFlush } from './flush.js';
import { createInFlight } from './in-flight.js';
import { createInForceView } from './in-force.js';
import { createLink, type Link } from './link.js';
import { type LimiterOptions, resolveOptions } from './options.js';
import { createOutcomes } from './outcomes.js';
import { createPoolGauge } from './pool-gauge.js';
import { createRecorder } from './recorder.js';
import { createRedisTime } from './redis-time.js';
import { createRefunds } from './refunds.js';
import { shadowKeys, withRollout } from './rollout-shadow.js';
import { createSamples } from './samples.js';
import { createServiceTime } from './service-time.js';
import { createShares } from './shares.js';
import { createSlots } from './slots.js';
import { createStats } from './stats.js';
import { createCrowdWatch } from './subject-crowd.js';
import { createTaker } from './taker.js';
import { createTopSubjects } from './top-subjects.js';
import { createTracing } from './tracing.js';
import { processVitals } from './vitals.js';
import { createWaits } from './wait.js';
import { createWarnings } from './warnings.js';

/** A limiter that closes waits for Redis at most this long. */
const CLOSE_MS = 500;

export function createWiring(options: LimiterOptions, processId: string) {
  const resolved = resolveOptions(options);
  const { clock, deadlineMs, name } = resolved;
  const warn = createWarnings(clock, options.onWarning);
  // Before the connection: a tracer that is none must not leave one open.
  const tracing = createTracing(name, resolved.tracer);
  const connection = openConnection(options, warn);
  const { redis } = connection;
  const view = createInForceView(resolved);
  const time = createRedisTime();
  const inFlight = createInFlight(resolved.completions, (slot) => {
    slots.release(slot);
    waits.freed();
  });
  const denials = resolved.denyCache ? createDenyCache() : NO_DENY_CACHE;
  const recorder = createRecorder();
  const serviceTime = createServiceTime();
  const pool = createPoolGauge();
  const finder = createKeyFinder(redis, resolved);
  const beside = { redis, link: () => link, finder, time, clock, view, processId, warn };
  const samples = createSamples(beside);
  const top = resolved.topSubjects ? createTopSubjects(beside) : null;
  const stats = createStats(samples, top);
  let managed = true;
  let closed = false;

  const onReply: Parameters<typeof createTaker>[0]['onReply'] = (inForce) => {
    const newer = view.see(inForce, clock.monotonicMs());
    managed = inForce.managed;
    stats.sees(inForce, terms()?.windowMs ?? 0);
    if (newer || !managed) denials.clear();
    if (newer) blocks.end();
    adopted.see(inForce);
    if (!managed) {
      warn(
        'FLYBALL_W_UNMANAGED',
        `limiter ${name}: Redis has no params for it; the numbers known here are used. Is \`flyball run\` running with its policy?`,
      );
    }
    // One that has left would join again.
    if (!newer || closed) return;
    waits.changed();
    if (inFlight.reports) void shares.refresh(clock.monotonicMs() + deadlineMs);
  };
  const adopted = createAdoptedTerms({
    name,
    redis,
    link: () => link,
    finder,
    clock,
    deadlineMs,
    warn,
  });
  /** The adopted policy's word beats that of the code; a single take may still choose. */
  const onRedisError = () => adopted.onRedisError ?? resolved.onRedisError;
  const terms = () => adopted.algorithm ?? resolved.terms;
  const onRuled = createCrowdWatch({ name, stats, warn });
  const known = { redis, link: () => link, finder, time, view, stats, clock, deadlineMs };
  const parts = { ...known, onReply, onRuled };
  const slots = createSlots({ ...parts, inFlight, processId });
  const exact = () => adopted.service.exact ?? resolved.exact;
  const shares = createShares({ ...parts, inFlight, slots, exact, processId });
  const taker = createTaker({ ...parts, terms });
  const blocks = createBlocks({
    ...parts,
    wanted() {
      const algorithm = terms()?.algorithm ?? 'token-bucket';
      return (adopted.service.draw ?? resolved.draw) === 'block' && algorithm === 'token-bucket';
    },
    onDrawn: (tokens, nowMs) => enforced.steps.local.spend(tokens, nowMs),
  });
  const link: Link = createLink({
    redis,
    deadlineMs,
    clock,
    probe: () => taker.look(),
    onEvent(event, cause) {
      if (event === 'lost') {
        time.forget();
        denials.clear();
        blocks.forget();
      }
      if (event === 'down') {
        stats.outages += 1;
        warn(
          'FLYBALL_W_REDIS_AWAY',
          `limiter ${name}: Redis does not answer (${cause}); deciding without it, onRedisError is '${onRedisError()}'.`,
        );
      }
      if (event === 'up') {
        void shares.refresh(clock.monotonicMs() + deadlineMs);
        waits.changed();
      }
    },
  });

  const refunds = createRefunds({
    ...parts,
    name,
    warn,
    terms,
    local: () => enforced.steps.local,
    count: () => adopted.service.count ?? resolved.count,
    // A denial that this process still repeats may have been for want of just these tokens.
    onRefunded: () => denials.clear(),
  });
  const ended: Finish = (outcome, info, generation, startedMs, slot, decision) => {
    const latencyMs = Math.max(0, clock.monotonicMs() - startedMs);
    if (slot) inFlight.release(slot);
    else inFlight.setReports();
    if (outcome !== 'cancelled') serviceTime.add(latencyMs);
    refunds.ended(decision, outcome);
    recorder.outcome(outcome, latencyMs, generation, info);
  };
  const finish = Object.assign(ended, { refunds });
  const vitals = processVitals();
  const flush = createFlush({ ...parts, recorder, inFlight, pool, vitals, processId });
  const enforced = createDecider({
    ...parts,
    link,
    taker,
    shares,
    inFlight,
    denials,
    blocks,
    recorder,
    serviceTime,
    warn,
    finish,
  });
  const apart = createTaker({ ...parts, finder: shadowKeys(finder), terms });
  const decider = withRollout(enforced, {
    ...parts,
    adopted,
    taker: apart,
    link,
    recorder,
    finish,
  });
  // A tier that rose lets pass what this process still remembers as denied.
  const outcomes = createOutcomes({ ...known, name, warn, onCounted: () => denials.clear() });
  const { maxWaiting } = resolved;
  const waits = createWaits({ name, maxWaiting, decider, view, clock, onRedisError });

  /** No part of a beat rejects; should one, the service must not end for it. */
  function beatFailed(error: Error) {
    warn('FLYBALL_W_BEAT', `limiter ${name}: ${error?.stack ?? error}. Please report this.`);
  }
  const beat = startBeat(
    redis,
    () => {
      tracing.look();
      inFlight.sweep(clock.monotonicMs(), resolved.abandonedAfterMs);
      return [
        flush(),
        samples.beat(),
        top?.beat(),
        slots.renew(),
        link.up ? shares.refresh(clock.monotonicMs() + deadlineMs) : undefined,
        // A daemon may adopt this limiter into a group after the service started.
        link.up && !managed ? finder.find().catch(() => {}) : undefined,
      ];
    },
    beatFailed,
  );
  // Learns Redis time, numbers and share before the first request needs them.
  void shares.refresh(clock.monotonicMs() + Math.max(deadlineMs, CLOSE_MS));

  async function close() {
    closed = true;
    waits.close();
    beat.end();
    adopted.close();
    // Missed deadlines of a busy moment are no reason to keep from others what they can have now.
    if (await link.answers(CLOSE_MS)) {
      await Promise.all([flush(), samples.beat(), top?.flush(), refunds.close(), blocks.close()]);
      await slots.close();
      await shares.leave(clock.monotonicMs() + CLOSE_MS);
    }
    link.close();
    connection.release();
  }

  return {
    ...parts,
    resolved,
    decider,
    shares,
    denials,
    recorder,
    terms,
    serviceTime,
    finish,
    refunds,
    waits,
    outcomes,
    inFlight,
    view,
    stats,
    pool,
    warn,
    link,
    adopted,
    onRedisError,
    tracing,
    get closed() {
      return closed;
    },
    close,
  };
}
