/** Law `adaptive` where no completion is seen: moves the rate alone, from what was verified. Stage: decide. */
import { boundsOf, clamp } from './bounds.js';
import { type Law, numberIn, startingPoint } from './law.js';
import { overloadOf } from './overload.js';
import { overloadText, type Reason, trafficText } from './reasons.js';

/**
 *   near the knee   good ← X, rate ← 0.9 · good        (X: measured throughput, never the old rate)
 *   overload        good ← X at its onset, rate ← share · X until it is drained: the deeper, the worse it is and
 *                   the older the data. Late answers of old requests prove nothing: one cut, then wait.
 *   afterwards      rate ← good · curve(t): at once to 0.9 of the last good rate, slow near it, fast beyond it
 *                   (after CUBIC). t runs only while the rate binds, and faster the more room there is.
 *   always          rate ≤ beyond · verified
 *
 * A rate must foresee where a cap corrects itself; so it aims lower, and is the second choice.
 */
export const TUNING = {
  aim: 0.7,
  calm: 0.1,
  /** curve(0), and the seconds to its plateau. */
  returnTo: 0.92,
  plateau: 20,
  beyondPlateau: 0.12,
  /** How much faster t runs for each unit (log) of room under the aim. */
  haste: 3,
  /** The share of X while draining, less for overload and for age. */
  drain: 0.75,
  drainOver: 0.3,
  drainLeast: 0.3,
  agePerSecond: 0.02,
  /** A cut this soon after a return says that the good rate was not good. */
  relapseMs: 20_000,
  relapse: 0.85,
  beyond: 2.5,
  smooth: 0.5,
  fade: 0.001,
};

/** 0.9 … 1 up to the plateau, then steeper and steeper. */
function curve(t: number): number {
  const u = (t - TUNING.plateau) / TUNING.plateau;
  return u < 0 ? 1 + (1 - TUNING.returnTo) * u ** 3 : 1 + TUNING.beyondPlateau * u ** 3;
}

export const adaptiveRateLaw: Law = (policy, before, sample) => {
  const bounds = boundsOf(policy).rate;
  const start = startingPoint(sample);
  const overload = overloadOf(policy, sample);
  const { traffic } = sample;
  const dtMs = Math.max(0, sample.dtMs);
  const over = overload.z - Math.log(TUNING.aim);
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
  let rate = start.rate;
  let reason: Reason = 'steady';

  const latency = policy.signals[overload.worst]?.stat === 'latency';
  const answeredMs = latency ? overload.value : (traffic.meanMs ?? 0);
  const drained = sinceCutMs >= traffic.ageMs + traffic.intervalMs + answeredMs;
  const binds = traffic.deniedByRate > 0 || traffic.admittedRate > 0.95 * start.rate;
  if (!overload.fresh || !traffic.fresh) reason = 'no_evidence';
  else if (over > 0) {
    if (drained) {
      const soon = sinceCutMs < TUNING.relapseMs;
      const grave = overload.z > 0;
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
    if (over < -TUNING.calm && drained && (binds || draining)) {
      const seconds = Math.min(traffic.intervalMs, 5000) / 1000;
      if (!draining) t += seconds * (1 + TUNING.haste * clamp(-over - TUNING.calm, 0, 1));
      draining = 0;
      rate = Math.max(
        rate,
        Math.min(good * curve(t), TUNING.beyond * Math.max(verified, measured)),
      );
      if (rate > start.rate) reason = 'law_raise';
    }
  }
  rate = clamp(rate, bounds.min, bounds.max);
  return {
    memory: { measured, onset, verified, good, t, draining, sinceCutMs },
    rate: reason === 'no_evidence' || reason === 'steady' ? start.rate : rate,
    inFlightMax: start.inFlightMax,
    reason,
    why: overload.fresh
      ? `${overloadText(policy, overload)}; ${trafficText(sample)}; rate only`
      : 'no fresh signal',
    terms: { z: overload.z, over, measured, verified, good, t, drained: +drained, binds: +binds },
  };
};
