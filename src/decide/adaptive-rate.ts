/** Law `adaptive` where no completion is seen: moves the rate alone, from what was verified. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { DEFAULT_LOOP, holdOffMs } from '../tune/loop-fit.js';
import { boundsOf, clamp } from './bounds.js';
import { afterCut, judge, relieve } from './futile.js';
import { type Law, numberIn, startingPoint } from './law.js';
import { overloadOf } from './overload.js';
import { AIM, curve, leisureAt, rateAim, stridesOf } from './rate-aim.js';
import { num, type Reason, seenOf, trafficText } from './reasons.js';

/**
 *   near the knee   good ← X, rate ← 0.92 · good          (X: measured throughput, never the old rate)
 *   queueing        more under way than `spread` · X · W needs: good ← X at its onset; rate ← drain · X less the
 *                   excess over drainSeconds, until what is under way is back to normal
 *   drained         at once to 0.92 of the last good rate: late answers of old requests prove nothing
 *   afterwards      rate ← good · curve(t): slow near it, faster beyond it (after CUBIC). t runs only while the
 *                   rate binds; one step is at most `stride`, so that a sample can still tell
 *   back            below what was carried (verified), while nothing waits: in great strides; where that ends in a
 *                   queue, so much is not carried any more
 *   always          rate ≤ beyond · verified
 *   did not bind    mild overload brings it down to the load, no further: it was not what is too much
 *   futile          response time does not answer to the rate: no further cut, the aim lies just above what it is, and
 *                   what it is now is response time at leisure
 *   unstated        a policy whose rate is its upper bound: until a first cut the rate stands at beyond · verified,
 *                   or at what fewInFlight give, and climbs by searchStride while response time does not answer
 *
 * A rate must foresee where a cap corrects itself; so it aims lower (rate-aim.ts), and is the second choice.
 */
export const TUNING = {
  /** The share of X while draining, less for overload and for age. */
  drain: 0.75,
  drainOver: 0.3,
  drainLeast: 0.4,
  agePerSecond: 0.02,
  /** A cut this soon after a return says that the good rate was not good. */
  relapseMs: 20_000,
  relapse: 0.93,
  beyond: 2.5,
  /** Largest step beyond the good rate. */
  stride: 0.08,
  /** Longer steps while little is under way for the throughput. */
  roomStride: 1,
  smooth: 0.5,
  /** A queue: more under way than `spread` times the need, by this many seconds of throughput. */
  spread: 1.4,
  queueSeconds: 0.06,
  drainSeconds: 1.5,
  fade: 0.001,
  /** So many in flight any service carries. */
  fewInFlight: 8,
  greatStride: 0.5,
  /** Where a return in great strides ended in a queue: this share of it was carried at most. */
  refuted: 0.85,
  /** Share of failures from which on what is under way is no queue. */
  failing: 0.5,
};

/** A rate at the upper bound says only what must never be passed, not what the service was seen to carry. */
function unstated({ limiter, bounds }: Policy): boolean {
  return bounds !== undefined && limiter.rate >= bounds.rate.max;
}

export const adaptiveRateLaw: Law = (policy, before, sample, loop = DEFAULT_LOOP) => {
  const bounds = boundsOf(policy).rate;
  const start = startingPoint(sample);
  const overload = overloadOf(policy, sample);
  const { traffic } = sample;
  const dtMs = Math.max(0, sample.dtMs);
  const relief = relieve(before, overload, AIM.aim, dtMs);
  const { reliefMs } = relief;
  let { episode } = relief;
  const seen = traffic.answers > 0 ? traffic.okRate : traffic.admittedRate;
  const last = numberIn(before, 'measured', seen);
  const weight = traffic.fresh ? clamp((TUNING.smooth * traffic.intervalMs) / 1000, 0, 1) : 0;
  const measured = last + weight * (seen - last);
  const onset = Math.max(measured, numberIn(before, 'onset', 0) * 0.85 ** (dtMs / 1000));
  let verified = numberIn(before, 'verified', 0) * (1 - TUNING.fade) ** (dtMs / 1000);
  let good = numberIn(before, 'good', start.rate);
  let t = numberIn(before, 't', 0);
  let draining = numberIn(before, 'draining', 0);
  let sinceCutMs = Math.min(3_600_000, numberIn(before, 'sinceCutMs', 3_600_000) + dtMs);
  let usualMs = numberIn(before, 'usualMs', traffic.meanMs ?? 0);
  // 1 while it returns in great strides, until the next cut.
  let hurried = numberIn(before, 'hurried', 0);
  let strides = 0;
  // 1 until the first cut, if the policy's own rate is no more than its upper bound.
  let searching = numberIn(before, 'searching', unstated(policy) ? 1 : 0);
  const leisure = leisureAt(measured / Math.max(1, verified, measured), before, sample);
  const { slope, over, grave, room, below } = rateAim(overload, episode, leisure, traffic.ageMs);
  let rate = start.rate;
  let reason: Reason = 'steady';

  const latency = policy.signals[overload.worst]?.stat === 'latency';
  const answeredMs = latency ? overload.value : (traffic.meanMs ?? 0);
  const reckonedMs = traffic.ageMs + traffic.intervalMs + answeredMs;
  const drained = sinceCutMs >= holdOffMs(loop, reckonedMs, traffic.ageMs);
  const binds = traffic.deniedByRate > 0 || traffic.admittedRate > 0.95 * start.rate;
  // What is under way beyond what this throughput needs: seen at once, where latencies speak only when answered.
  const underWay = traffic.inFlightNow ?? traffic.inFlight ?? 0;
  const needed = (TUNING.spread * Math.max(measured, 1) * usualMs) / 1000 + 5;
  const excess = underWay - needed;
  // Failures are not congestion, and may take any time: the breaker's business.
  const failing = (traffic.errorRatio ?? 0) > TUNING.failing;
  const queueing = usualMs > 0 && !failing && excess > TUNING.queueSeconds * measured;
  if (traffic.meanMs !== null && over < 0 && !queueing) usualMs += 0.1 * (traffic.meanMs - usualMs);
  if ((!overload.fresh && !(queueing || draining)) || !traffic.fresh) reason = 'no_evidence';
  else if (queueing) {
    const soon = sinceCutMs < TUNING.relapseMs;
    if (!draining)
      good = Math.min(soon ? good * TUNING.relapse : Math.max(good, start.rate), onset);
    rate = Math.min(
      rate,
      Math.max(
        TUNING.drainLeast * measured,
        TUNING.drain * measured - excess / TUNING.drainSeconds,
      ),
    );
    draining = 1;
    t = 0;
    sinceCutMs = 0;
    reason = 'law_emergency_cut';
  } else if (draining && usualMs > 0) {
    // Drained by what is under way, whatever the late answers say.
    draining = 0;
    rate = Math.max(rate, curve(0) * good);
    reason = 'law_raise';
  } else if (over > 0) {
    if (drained) {
      const was = episode.futile;
      episode = judge(episode, start.rate, overload.z, measured);
      // Response time does not answer to the rate: it is what the service takes by itself.
      if (episode.futile > was) leisure.leisureMs = leisure.meanMs;
    }
    // A rate that did not bind is not what is too much: stay where the load is, and see.
    const load = measured * (1 + 2 / Math.sqrt(Math.max(1, traffic.answers)));
    const mild = !binds && !draining && overload.z < Math.log(AIM.mild);
    if (drained && mild) {
      rate = Math.min(rate, load);
      if (rate < start.rate) {
        good = Math.min(Math.max(good, start.rate), rate);
        t = 0;
        sinceCutMs = 0;
        reason = 'law_cut';
      }
    } else if (drained && (episode.futile === 0 || grave)) {
      const soon = sinceCutMs < TUNING.relapseMs;
      episode = afterCut(episode, sinceCutMs, start.rate, overload.z, measured);
      if (!draining)
        good = Math.min(
          soon ? good * TUNING.relapse : Math.max(good, start.rate),
          grave ? onset : measured,
        );
      if (grave) {
        const ageSeconds = (traffic.ageMs + traffic.intervalMs) / 1000;
        const share =
          TUNING.drain - TUNING.agePerSecond * ageSeconds - TUNING.drainOver * overload.z;
        rate = Math.min(rate, Math.max(TUNING.drainLeast, share) * measured);
        draining = 1;
      } else rate = Math.min(rate, curve(0) * good);
      t = 0;
      sinceCutMs = 0;
      reason = overload.z > Math.log(2) ? 'law_emergency_cut' : 'law_cut';
    }
  } else {
    verified = Math.max(verified, measured);
    // A rate that nobody stated and nothing has shown to be good: a burst must not find it open.
    const shown = Math.max(
      TUNING.beyond * Math.max(verified, measured),
      usualMs > 0 ? (1000 * TUNING.fewInFlight) / usualMs : start.rate,
    );
    if (searching === 1 && !binds && start.rate > shown) {
      rate = shown;
      good = shown;
      reason = 'unverified';
    } else if (room && drained && (binds || draining)) {
      if (!draining) t += (Math.min(traffic.intervalMs, 5000) / 1000) * (1 + AIM.haste * below);
      draining = 0;
      // Back at once to just under what was good; beyond it no further than one sample can tell.
      const spare = clamp((needed - underWay) / needed, 0, 1);
      // While nothing waits in great strides, if nothing is known of the knee, or back to what it has carried.
      const isBack = searching === 0 && start.rate < curve(0) * verified;
      if (searching === 1 || isBack) strides = stridesOf(isBack ? leisure : null, usualMs, traffic);
      const stride = TUNING.stride * (1 + TUNING.roomStride * spare) + TUNING.greatStride * strides;
      const next = (1 + stride) * start.rate;
      if (searching === 1) good = Math.max(good, next);
      else if (strides > 0) {
        good = Math.max(good, Math.min(verified, next / curve(0)));
        hurried = 1;
      }
      const ceiling = Math.max(curve(0) * good, next);
      rate = Math.max(
        rate,
        Math.min(good * curve(t), ceiling, TUNING.beyond * Math.max(verified, measured)),
      );
      if (rate > start.rate) reason = 'law_raise';
    }
  }
  if (sinceCutMs === 0) {
    searching = 0;
    if (hurried === 1 && queueing) verified = Math.min(verified, TUNING.refuted * start.rate);
    hurried = 0;
  }
  // What the queue says comes before what late answers say: then it is the reason, and is told.
  let queueText =
    strides > 0 && hurried === 1 ? `; back to the ${num(verified)}/s carried before` : '';
  if (reason === 'law_raise' && over > 0) queueText = `; ${num(underWay)} under way: drained`;
  if (queueing)
    queueText = `; ${num(underWay)} under way, of which this throughput needs ${num(needed)}`;
  const beside = `${trafficText(sample)}${queueText}; rate only`;
  rate = clamp(rate, bounds.min, bounds.max);
  return {
    memory: {
      measured,
      usualMs,
      ...leisure,
      onset,
      verified,
      good,
      t,
      draining,
      sinceCutMs,
      reliefMs,
      searching,
      hurried,
      ...episode,
    },
    rate: reason === 'no_evidence' || reason === 'steady' ? start.rate : rate,
    inFlightMax: start.inFlightMax,
    reason,
    ...seenOf(policy, overload, overload.fresh ? beside : ''),
    terms: {
      z: overload.z,
      over,
      excess,
      usualMs,
      ...leisure,
      slope,
      strides,
      grave: +grave,
      measured,
      verified,
      good,
      t,
      drained: +drained,
      binds: +binds,
      futile: episode.futile,
      refZ: episode.refZ,
    },
  };
};
