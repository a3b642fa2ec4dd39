/**
 * A small service in virtual time: open-loop clients with a timeout and one retry → rate bucket and in-flight cap →
 * a pool of connections (first come, first served) → an upstream. Reports telemetry as the SDK would. Stage: test.
 */

import { type Bins, GAMMA, type TelemetryReading } from '../../src/sense/readings.js';
import { createEventQueue } from '../../src/sim/event-queue.js';
import { seeded } from '../../src/sim/random.js';

export interface PlantPhase {
  seconds: number;
  /** Arrivals a second, before retries. */
  rate: number;
  /** 2: the database takes twice as long. */
  slowdown?: number;
  upstreamFails?: boolean;
}

export interface PlantOptions {
  phases: readonly PlantPhase[];
  seed: number;
  connections: number;
  /** Mean time a request holds its connection; spread evenly over ± 40 %. */
  holdMs: number;
  clientTimeoutMs: number;
  goodMs: number;
}

/** What is enforced now. */
export interface Enforced {
  rate: number;
  capacity: number;
  inFlightMax: number;
  generation: number;
}

export interface PlantSecond {
  phase: number;
  /** Seconds since the phase began. */
  sincePhase: number;
  offered: number;
  good: number;
  failed: number;
  timedOut: number;
  latencies: number[];
  poolWaiting: number;
}

export interface Plant {
  enforce(numbers: Enforced): void;
  /** Runs to this moment (ms). */
  run(untilMs: number): void;
  /** The oldest flush that was not yet read; null when there is none. */
  telemetry(): TelemetryReading | null;
  readonly seconds: PlantSecond[];
  readonly durationMs: number;
}

interface Request {
  atMs: number;
  attempt: number;
  generation: number;
  gone: boolean;
}

export function createPlant(options: PlantOptions): Plant {
  const { phases, connections, holdMs, clientTimeoutMs, goodMs } = options;
  const random = seeded(options.seed);
  const events = createEventQueue();
  const at = events.at;
  let nowMs = 0;
  let enforced: Enforced = { rate: 1e9, capacity: 1e9, inFlightMax: 1e9, generation: 0 };
  let tokens = 0;
  let tokensAtMs = 0;
  let inFlight = 0;
  let busy = 0;
  const queue: Request[] = [];
  const seconds: PlantSecond[] = [];
  let counts = emptyCounts();
  const flushes: TelemetryReading[] = [];
  let flushedToMs = 0;

  const starts: number[] = [];
  let durationMs = 0;
  for (const phase of phases) {
    starts.push(durationMs);
    durationMs += phase.seconds * 1000;
  }
  const phaseAt = (ms: number) => starts.findLastIndex((start) => ms >= start);
  const second = () => {
    const index = Math.floor(nowMs / 1000);
    while (seconds.length <= index) {
      const phase = phaseAt(seconds.length * 1000);
      const sincePhase = seconds.length - starts[phase]! / 1000;
      seconds.push({ phase, sincePhase, ...emptySecond() });
    }
    return seconds[index]!;
  };

  function arrive(attempt: number): void {
    if (attempt === 0) second().offered++;
    counts.offered++;
    const denied = deniedBy();
    if (denied !== null) {
      counts.denied[denied] = (counts.denied[denied] ?? 0) + 1;
      return;
    }
    counts.admitted++;
    inFlight++;
    const request: Request = { atMs: nowMs, attempt, generation: enforced.generation, gone: false };
    at(nowMs + clientTimeoutMs, () => {
      if (request.gone) return;
      request.gone = true;
      second().timedOut++;
      second().latencies.push(clientTimeoutMs);
      if (attempt === 0) at(nowMs + 50 + 100 * random(), () => arrive(1));
    });
    if (busy < connections) hold(request);
    else queue.push(request);
  }

  function deniedBy(): 'rate' | 'in_flight' | null {
    if (inFlight >= enforced.inFlightMax) return 'in_flight';
    const paid = tokens + ((nowMs - tokensAtMs) * enforced.rate) / 1000;
    tokens = Math.min(enforced.capacity, paid);
    tokensAtMs = nowMs;
    if (tokens < 1) return 'rate';
    tokens -= 1;
    return null;
  }

  function hold(request: Request): void {
    busy++;
    const waited = nowMs - request.atMs;
    addTo(counts.dbWait, waited);
    counts.dbWaitSumMs += waited;
    const slow = phases[phaseAt(nowMs)]?.slowdown ?? 1;
    at(nowMs + holdMs * slow * (0.6 + 0.8 * random()), () => {
      busy--;
      const waiting = queue.shift();
      if (waiting !== undefined) hold(waiting);
      const fails = phases[phaseAt(nowMs)]?.upstreamFails === true;
      at(nowMs + (fails ? 1 : 20), () => answer(request, !fails));
    });
  }

  function answer(request: Request, ok: boolean): void {
    inFlight--;
    const ms = nowMs - request.atMs;
    addTo(counts.latency, ms);
    counts.latencySumMs += ms;
    if (request.generation > (counts.generation?.id ?? -1)) {
      counts.generation = { id: request.generation, ok: 0, failed: 0, codes: {} };
    }
    const current = counts.generation !== null && counts.generation.id === request.generation;
    if (ok) {
      counts.ok++;
      if (current) counts.generation!.ok++;
    } else {
      counts.failed++;
      counts.codes.SYSTEMERROR = (counts.codes.SYSTEMERROR ?? 0) + 1;
      if (current) {
        const { codes } = counts.generation!;
        counts.generation!.failed++;
        codes.SYSTEMERROR = (codes.SYSTEMERROR ?? 0) + 1;
      }
    }
    if (request.gone) return;
    request.gone = true;
    second().latencies.push(ms);
    if (ok && ms <= goodMs) second().good++;
    if (!ok) {
      second().failed++;
      if (request.attempt === 0) at(nowMs + 50 + 100 * random(), () => arrive(1));
    }
  }

  function flush(): void {
    const span = { fromMs: flushedToMs, toMs: nowMs, processes: 1, reporting: 1 };
    const gauges = { inFlight, oldestMs: 0, poolWaiting: queue.length };
    flushes.push({ kind: 'telemetry', ...span, ...gauges, ...counts });
    counts = emptyCounts();
    flushedToMs = nowMs;
    second().poolWaiting = Math.max(second().poolWaiting, queue.length);
    at(nowMs + 1000, flush);
  }

  // The service flushes once a second, out of step with the ticks.
  at(370 + 500 * random(), flush);
  for (let i = 0; i < phases.length; i++) {
    const until = starts[i]! + phases[i]!.seconds * 1000;
    for (let t = starts[i]!; ; ) {
      t += (-Math.log(1 - random()) / phases[i]!.rate) * 1000;
      if (t >= until) break;
      at(t, () => arrive(0));
    }
  }

  return {
    seconds,
    durationMs,
    enforce(numbers) {
      // As the token clock does: what the old rate has paid stays paid, and open pays nothing.
      tokens = Math.min(enforced.capacity, tokens + ((nowMs - tokensAtMs) * enforced.rate) / 1000);
      tokensAtMs = nowMs;
      if (numbers.rate === 0) tokens = 0;
      enforced = numbers;
    },
    run(untilMs) {
      for (let event = events.next(untilMs); event !== null; event = events.next(untilMs)) {
        nowMs = event.atMs;
        event.run();
      }
      nowMs = untilMs;
    },
    telemetry() {
      return flushes.shift() ?? null;
    },
  };
}

function addTo(bins: Bins, ms: number): void {
  const bin = Math.ceil(Math.log(Math.max(ms, 0.001)) / Math.log(GAMMA));
  bins[bin] = (bins[bin] ?? 0) + 1;
}

type Counts = Omit<
  TelemetryReading,
  | 'kind'
  | 'fromMs'
  | 'toMs'
  | 'processes'
  | 'reporting'
  | 'inFlight'
  | 'poolWaiting'
  | 'oldestMs'
  | 'wouldDeny'
>;
function emptyCounts(): Counts {
  return {
    offered: 0,
    admitted: 0,
    denied: {},
    ok: 0,
    failed: 0,
    timedOut: 0,
    cancelled: 0,
    latency: {},
    latencySumMs: 0,
    codes: {},
    upstreams: {},
    dbWait: {},
    dbWaitSumMs: 0,
    generation: null,
  };
}
function emptySecond() {
  return { offered: 0, good: 0, failed: 0, timedOut: 0, latencies: [], poolWaiting: 0 };
}
