/** Law `adaptive` where no completion is seen: moves the rate alone, from what was verified. Stage: decide. */
import { boundsOf, clamp } from './bounds.js';
import { type Law, numberIn, startingPoint } from './law.js';
import { overloadOf } from './overload.js';
import { overloadText, type Reason, trafficText } from './reasons.js';

/**
 *   overload   rate ← share · X, a share of the measured throughput X, not of the old rate: smaller the worse
 *              it is and the older the data. Late answers of old requests prove nothing: one cut, then wait.
 *   drained    rate ← returnTo · good: back at once to just under the last rate that was good.
 *   near good  slow growth, faster the longer it goes well (after CUBIC), only while the rate binds.
 *   always     rate ≤ beyond · verified.
 *
 * A rate must foresee where a cap corrects itself; so it aims lower, and is the second choice.
 */
export const TUNING = {
  aim: 0.7,
  calm: 0.15,
  share: 0.9,
  shareLeast: 0.4,
  /** Further cut for each second of the data's age, and for each unit of overload. */
  agePerSecond: 0.02,
  overShare: 0.4,
  returnTo: 0.9,
  /** After a relapse soon after the return, the good rate was not good. */
  relapseMs: 30_000,
  relapse: 0.85,
  growFirst: 0.004,
  growMore: 0.0008,
  growMost: 0.06,
  beyond: 2.5,
  smooth: 0.5,
  fade: 0.001,
};

export const adaptiveRateLaw: Law = (policy, before, sample) => {
  const bounds = boundsOf(policy).rate;
  const start = startingPoint(sample);
  const overload = overloadOf(policy, sample);
  const { traffic } = sample;
  const dtMs = Math.max(0, sample.dtMs);
  const over = overload.z - Math.log(TUNING.aim);
  const seen = traffic.answers > 0 ? traffic.okRate : traffic.admittedRate;
  const measured = traffic.fresh
    ? TUNING.smooth * numberIn(before, 'measured', seen) + (1 - TUNING.smooth) * seen
    : numberIn(before, 'measured', seen);
  let verified = numberIn(before, 'verified', 0) * (1 - TUNING.fade) ** (dtMs / 1000);
  let good = numberIn(before, 'good', start.rate);
  let sinceCutMs = Math.min(3_600_000, numberIn(before, 'sinceCutMs', 3_600_000) + dtMs);
  let wellMs = numberIn(before, 'wellMs', 0) + dtMs;
  // The exact rate between two writes; what was moved by others is followed.
  let rate = clamp(numberIn(before, 'rate', start.rate), 0.9 * start.rate, 1.15 * start.rate);
  let reason: Reason = 'steady';

  const latency = policy.signals[overload.worst]?.stat === 'latency';
  const answeredMs = latency ? overload.value : (traffic.meanMs ?? 0);
  const drained = sinceCutMs >= traffic.ageMs + 0.5 * traffic.intervalMs + answeredMs;
  const binds = traffic.deniedByRate > 0 || traffic.admittedRate > 0.95 * start.rate;
  if (!overload.fresh || !traffic.fresh) reason = 'no_evidence';
  else if (over > 0) {
    wellMs = 0;
    if (drained) {
      const ageSeconds = (traffic.ageMs + traffic.intervalMs) / 1000;
      const share = clamp(
        TUNING.share - TUNING.agePerSecond * ageSeconds - TUNING.overShare * over,
        TUNING.shareLeast,
        1,
      );
      const soon = sinceCutMs < TUNING.relapseMs;
      good = soon ? good * TUNING.relapse : Math.min(good, Math.max(verified, measured));
      rate = Math.max(bounds.min, Math.min(rate, share * measured));
      sinceCutMs = 0;
      reason = over > Math.log(2) ? 'law_emergency_cut' : 'law_cut';
    }
  } else {
    verified = Math.max(verified, measured);
    if (over < -TUNING.calm && binds && drained) {
      const back = TUNING.returnTo * good;
      const seconds = Math.min(traffic.intervalMs, 5000) / 1000;
      if (start.rate < back) rate = back;
      else {
        const grow = Math.min(
          TUNING.growMost,
          TUNING.growFirst + (TUNING.growMore * wellMs) / 1000,
        );
        rate = Math.max(rate, start.rate) * (1 + grow * seconds);
        good = Math.max(good, measured);
      }
      rate = Math.max(start.rate, Math.min(rate, TUNING.beyond * Math.max(verified, measured)));
      reason = 'law_raise';
    }
  }
  rate = clamp(rate, bounds.min, bounds.max);
  const moved = reason === 'law_cut' || reason === 'law_emergency_cut' || reason === 'law_raise';
  return {
    memory: { rate, measured, verified, good, sinceCutMs, wellMs },
    rate: moved ? rate : start.rate,
    inFlightMax: start.inFlightMax,
    reason,
    why: overload.fresh
      ? `${overloadText(policy, overload)}; ${trafficText(sample)}; rate only`
      : 'no fresh signal',
    terms: {
      z: overload.z,
      over,
      measured,
      verified,
      good,
      wellMs,
      drained: +drained,
      binds: +binds,
    },
  };
};
