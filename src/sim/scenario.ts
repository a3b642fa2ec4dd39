/** What happens to a service and when: load and conditions as functions of time, in named scenarios. Stage: simulate. */

/** What holds at a moment. Speeds: 1 as usual, 0.5 half as fast. */
export interface Conditions {
  /** First attempts a second. */
  arrivalsPerSecond: number;
  /** Of the service's own work. */
  speed: number;
  /** Share of the replicas that are there: of workers and connections, response time at leisure untouched. */
  replicas: number;
  databaseSpeed: number;
  /** Share of calls upstream that fail. */
  failRatio: number;
  /** No telemetry comes through. */
  blind: boolean;
}

export interface Load {
  /** Pure: the same moment gives the same conditions. */
  at(ms: number): Conditions;
}

export interface Scenario {
  name: string;
  /** One line for people. */
  says: string;
  durationS: number;
  /** Moments (s) between which conditions are alike: results are told phase by phase. The first is 0. */
  phases: readonly number[];
  /** Moments (s) at which something changes suddenly: convergence is measured from them. */
  disturbances: readonly number[];
  /** Spans (s) in which the upstream fails: an open breaker is right there, and only there. */
  outages?: readonly (readonly [fromS: number, toS: number])[];
  /** Retries of the clients; default none. */
  clients?: { retries: number; backoffMs: number; timeoutMs?: number };
  /** Conditions at a second, with arrivals as a multiple of the service's capacity. */
  at(second: number): Partial<Omit<Conditions, 'arrivalsPerSecond'>> & { load: number };
}

/** The scenario's load for a service that carries `capacityPerSecond`. */
export function loadOf(scenario: Scenario, capacityPerSecond: number): Load {
  return {
    at(ms) {
      const { load, ...rest } = scenario.at(ms / 1000);
      return {
        arrivalsPerSecond: load * capacityPerSecond,
        speed: 1,
        replicas: 1,
        databaseSpeed: 1,
        failRatio: 0,
        blind: false,
        ...rest,
      };
    },
  };
}

/** A value that jumps: `[second, value]` pairs in order; the last that has come holds. */
export function jumps(second: number, points: readonly (readonly [number, number])[]): number {
  let value = points[0]![1];
  for (const [from, next] of points) if (second >= from) value = next;
  return value;
}

/** A value that moves in straight lines between points, and stands still outside them. */
export function lines(second: number, points: readonly (readonly [number, number])[]): number {
  const after = points.findIndex(([at]) => at > second);
  if (after === -1) return points.at(-1)![1];
  if (after === 0) return points[0]![1];
  const [t0, v0] = points[after - 1]!;
  const [t1, v1] = points[after]!;
  return v0 + ((v1 - v0) * (second - t0)) / (t1 - t0);
}
