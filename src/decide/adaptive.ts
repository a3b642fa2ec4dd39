/** Law `adaptive`: the cap form where completions are seen, the rate-only form where they are not. Stage: decide. */
import { adaptiveCapLaw } from './adaptive-cap.js';
import { adaptiveRateLaw } from './adaptive-rate.js';
import { boundsOf } from './bounds.js';
import { type Law, numberIn } from './law.js';

/** No completion for this long under load: whoever is admitted does not report, and the cap binds nobody. */
const BLIND_MS = 10_000;

export const adaptiveLaw: Law = (policy, before, sample, loop) => {
  const { traffic } = sample;
  const said = policy.control.law === 'adaptive' ? policy.control.completions : undefined;
  const none =
    (said ?? policy.limiter.completions) === 'none' || boundsOf(policy).inFlight === null;
  const blind = traffic.admittedRate > 0 && traffic.answers === 0;
  const silent = numberIn(before, 'silentMs', 0);
  const silentMs = !traffic.fresh ? silent : blind ? Math.min(3_600_000, silent + sample.dtMs) : 0;
  const rateOnly = none || silentMs >= BLIND_MS;
  const was = numberIn(before, 'rateOnly', rateOnly ? 1 : 0) === 1;
  // Each form keeps a memory of its own: a change of form starts from what is in force.
  const own = was === rateOnly ? before : {};
  const result = (rateOnly ? adaptiveRateLaw : adaptiveCapLaw)(policy, own, sample, loop);
  result.memory.silentMs = silentMs;
  result.memory.rateOnly = rateOnly ? 1 : 0;
  return result;
};
