/** Guard `staleness`: nothing that is not fresh raises; missing signals hold, glide or are ignored. Stage: guard. */
import { boundsOf, clamp } from '../decide/bounds.js';
import { overloadOf } from '../decide/overload.js';
import { type Guard, passed, raises, withoutRaises } from './types.js';

export const staleness: Guard = (input) => {
  const { policy, sample, proposal, memory, now } = input;
  const missing = overloadOf(policy, sample).missing;
  const fresh = sample.traffic.fresh || Object.values(sample.signals).some((s) => s.fresh);

  const free = sample.inForce.held === 'none';
  if (free && policy.onMissing === 'glide' && memory.missingMs > policy.whenLost.after) {
    // Toward the safe values at the pace of a lost autopilot, but never up: what is unknown raises nothing.
    const bounds = boundsOf(policy);
    const safeRate = policy.whenLost.rate ?? policy.limiter.rate;
    const safeCap = policy.whenLost.inFlight ?? policy.limiter.inFlightMax ?? now.inFlightMax;
    const left = policy.whenLost.after + policy.whenLost.over - memory.missingMs + sample.dtMs;
    const part = left <= sample.dtMs ? 1 : clamp(sample.dtMs / left, 0, 1);
    const toward = (from: number, to: number) => (to < from ? from + (to - from) * part : from);
    const rate = Math.min(proposal.rate, Math.max(bounds.rate.min, toward(now.rate, safeRate)));
    const cap = Math.min(proposal.inFlightMax, Math.floor(toward(now.inFlightMax, safeCap)));
    if (rate < now.rate || cap < now.inFlightMax) {
      const sentence = `${missing.join(', ')} missing: toward the safe values`;
      return {
        proposal: { ...proposal, rate, inFlightMax: cap, reason: 'glide_missing', why: sentence },
        verdict: { guard: 'staleness', effect: 'lowered', sentence },
      };
    }
  }
  if (!raises(input)) return passed('staleness', proposal);
  const blocked = missing.length > 0 && policy.onMissing !== 'ignore';
  if (fresh && !blocked) return passed('staleness', proposal);
  const what = blocked ? `${missing.join(', ')} missing` : 'nothing fresh';
  return {
    proposal: { ...withoutRaises(input), reason: blocked ? 'signal_missing' : 'no_evidence' },
    verdict: { guard: 'staleness', effect: 'held', sentence: `${what}: no raise` },
  };
};
