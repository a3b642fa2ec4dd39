/** What the simple laws take from a sample: how overloaded, how fresh, which limit binds. Stage: decide. */
import type { Policy } from '../policy/schema.js';
import { type Overload, overloadOf } from './overload.js';
import type { Sample } from './types.js';

export interface Evidence {
  overload: Overload;
  /** The overload index: above 0 the worst signal has passed its setpoint. */
  z: number;
  /** A congestion signal and the traffic are fresh: else nothing moves. */
  fresh: boolean;
  /** Seconds that the fresh sample stands for; 0 without one. At most 5. */
  seconds: number;
  sinceCutMs: number;
  /** The answers seen are of requests admitted since the last cut. */
  drained: boolean;
  rateBinds: boolean;
  capBinds: boolean;
}

/** A limit binds when it denied, or when what it limits came near it. */
const NEAR = { rate: 0.95, cap: 0.7 };

export function evidenceOf(policy: Policy, sample: Sample, cutMsAgo: number): Evidence {
  const { traffic } = sample;
  const overload = overloadOf(policy, sample);
  const fresh = overload.fresh && traffic.fresh;
  const sinceCutMs = cutMsAgo + Math.max(0, sample.dtMs);
  const latency = policy.signals[overload.worst]?.stat === 'latency';
  const answeredMs = latency ? overload.value : (traffic.meanMs ?? 0);
  return {
    overload,
    z: overload.z,
    fresh,
    seconds: fresh ? Math.min(5, Math.max(0, traffic.intervalMs) / 1000) : 0,
    sinceCutMs,
    drained: sinceCutMs >= traffic.ageMs + traffic.intervalMs + answeredMs,
    ...bindsOf(sample),
  };
}

export function bindsOf({ traffic, inForce }: Sample): Pick<Evidence, 'rateBinds' | 'capBinds'> {
  const { rate, inFlightMax } = inForce.target;
  return {
    rateBinds: traffic.deniedByRate > 0 || traffic.admittedRate > NEAR.rate * rate,
    capBinds:
      inFlightMax > 0 &&
      (traffic.deniedByCap > 0 || (traffic.inFlight ?? 0) > NEAR.cap * inFlightMax),
  };
}
