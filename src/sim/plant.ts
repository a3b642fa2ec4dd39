/**
 * The plant in virtual time: clients with timeouts and retries → token bucket and in-flight cap → queue → workers with
 * contention → database pool → upstream. Deterministic for a seed. Stage: simulate.
 */
import type { Readings, TelemetryReading } from '../sense/readings.js';
import { countGeneration, countTime, emptyCounts, emptySecond, type Second } from './counts.js';
import { createEventQueue } from './event-queue.js';
import { createFifo } from './fifo.js';
import { createGate, type Enforced } from './gate.js';
import { drawTimes, streams } from './random.js';
import type { Conditions, Load } from './scenario.js';
import type { ClientModel, ServiceModel } from './service.js';

export interface PlantOptions {
  service: ServiceModel;
  clients: ClientModel;
  load: Load;
  durationMs: number;
  /** An answer within this is good. */
  goodMs: number;
  seed: number;
  /** Code that failures of the upstream are reported with. */
  failureCode: string;
}

export interface Plant {
  enforce(numbers: Enforced): void;
  /** Runs to this moment (ms). */
  run(untilMs: number): void;
  /** The oldest flush of telemetry that was not yet read, or why there is none. */
  telemetry(): Readings['telemetry'];
  /** Gauges of the database as of now. */
  pool(): { waiting: number; busyRatio: number };
  readonly seconds: Second[];
}

interface Request {
  atMs: number;
  attempt: number;
  generation: number;
  gone: boolean;
  /** When it began to wait for a connection. */
  waitsMs: number;
}

/** Load and conditions are looked at this often. */
const SLOT_MS = 100;
const FLUSH_MS = 1000;

export function createPlant(options: PlantOptions): Plant {
  const { service, clients, load, durationMs, goodMs, failureCode } = options;
  const [arrivals, app, db, upstream, backoff] = streams(options.seed, [
    'arrivals',
    'app',
    'db',
    'upstream',
    'backoff',
  ]) as [() => number, () => number, () => number, () => number, () => number];
  const appMs = drawTimes(service.app, app);
  const holdMs = service.pool && drawTimes(service.pool.hold, db);
  const events = createEventQueue();
  const at = events.at;
  const seconds: Second[] = [];
  const flushes: TelemetryReading[] = [];
  const workerQueue = createFifo<Request>();
  const poolQueue = createFifo<Request>();
  let nowMs = 0;
  let now: Conditions = load.at(0);
  const gate = createGate();
  let inFlight = 0;
  let working = 0;
  let computing = 0;
  let held = 0;
  let counts = emptyCounts();
  let flushedMs = 0;

  const second = () => {
    const index = Math.floor(nowMs / 1000);
    while (seconds.length <= index) seconds.push(emptySecond());
    return seconds[index]!;
  };

  function arrive(attempt: number): void {
    const of = second();
    if (attempt === 0) of.offered++;
    of.attempts++;
    counts.offered++;
    const denied = gate.deny(inFlight, nowMs);
    if (denied !== null) {
      of.denied++;
      counts.denied[denied] = (counts.denied[denied] ?? 0) + 1;
      if (clients.retryDenied) again(attempt);
      return;
    }
    of.admitted++;
    counts.admitted++;
    inFlight++;
    const request: Request = {
      atMs: nowMs,
      attempt,
      generation: gate.enforced.generation,
      gone: false,
      waitsMs: 0,
    };
    at(nowMs + clients.timeoutMs, () => leave(request));
    if (working < service.workers * now.replicas) work(request);
    else if (workerQueue.length < service.queueMax) workerQueue.push(request);
    else answer(request, false);
  }

  function leave(request: Request): void {
    if (request.gone) return;
    request.gone = true;
    second().timedOut++;
    countTime(second().latency, clients.timeoutMs);
    again(request.attempt);
  }

  function again(attempt: number): void {
    if (attempt >= clients.retries) return;
    at(nowMs + clients.backoffMs * (0.5 + backoff()), () => arrive(attempt + 1));
  }

  /** A worker keeps a request to its end, as a thread does; contention is among those that compute. */
  function work(request: Request): void {
    working++;
    computing++;
    // Fewer replicas: the same work crowds on fewer of them.
    const n = computing / now.replicas;
    const contention =
      1 + service.alpha * Math.max(0, n - 1) + service.beta * n * Math.max(0, n - 1);
    at(nowMs + (appMs() * contention) / now.speed, () => {
      computing--;
      request.waitsMs = nowMs;
      if (service.pool === null) callUpstream(request);
      else if (held < service.pool.connections * now.replicas) hold(request);
      else poolQueue.push(request);
    });
  }

  function hold(request: Request): void {
    held++;
    const waitedMs = nowMs - request.waitsMs;
    countTime(counts.dbWait, waitedMs);
    counts.dbWaitSumMs += waitedMs;
    at(nowMs + holdMs!() / now.databaseSpeed, () => {
      held--;
      holdNext();
      callUpstream(request);
    });
  }

  /** As many as there is room for: replicas come and go. */
  function holdNext(): void {
    while (poolQueue.length > 0 && held < service.pool!.connections * now.replicas) {
      hold(poolQueue.shift()!);
    }
  }

  function workNext(): void {
    while (workerQueue.length > 0 && working < service.workers * now.replicas) {
      work(workerQueue.shift()!);
    }
  }

  function callUpstream(request: Request): void {
    const fails = now.failRatio > 0 && upstream() < now.failRatio;
    const takesMs = fails ? service.upstreamFailMs : service.upstreamMs;
    const ended = () => {
      working--;
      workNext();
      answer(request, !fails);
    };
    if (takesMs > 0) at(nowMs + takesMs, ended);
    else ended();
  }

  function answer(request: Request, ok: boolean): void {
    inFlight--;
    const ms = nowMs - request.atMs;
    countTime(counts.latency, ms);
    counts.latencySumMs += ms;
    countGeneration(counts, request.generation, ok, failureCode);
    if (ok) counts.ok++;
    else {
      counts.failed++;
      counts.codes[failureCode] = (counts.codes[failureCode] ?? 0) + 1;
    }
    const of = second();
    if (request.gone) return;
    request.gone = true;
    countTime(of.latency, ms);
    if (!ok) {
      of.failed++;
      again(request.attempt);
    } else if (ms <= goodMs) of.good++;
    else of.late++;
  }

  function flush(): void {
    if (!now.blind) {
      flushes.push({
        kind: 'telemetry',
        fromMs: flushedMs,
        toMs: nowMs,
        processes: 1,
        reporting: 1,
        inFlight,
        oldestMs: 0,
        poolWaiting: service.pool === null ? null : poolQueue.length,
        ...counts,
      });
    }
    counts = emptyCounts();
    flushedMs = nowMs;
    at(nowMs + FLUSH_MS, flush);
  }

  /** Poisson arrivals; the rate is looked up anew in each slot, which changes nothing as they have no memory. */
  function slot(): void {
    now = load.at(nowMs);
    const endMs = nowMs + SLOT_MS;
    for (let t = nowMs; now.arrivalsPerSecond > 0; ) {
      t -= (Math.log(1 - arrivals()) / now.arrivalsPerSecond) * 1000;
      if (t >= endMs) break;
      at(t, () => arrive(0));
    }
    if (endMs < durationMs) at(endMs, slot);
  }

  function close(): void {
    const of = second();
    of.inFlight = inFlight;
    of.queue = workerQueue.length + poolQueue.length;
    of.rate = gate.enforced.rate;
    of.inFlightMax = gate.enforced.inFlightMax;
    of.open = gate.enforced.rate === 0;
    at(nowMs + 1000, close);
  }

  at(0, slot);
  // The service flushes out of step with the ticks.
  at(370 + 500 * backoff(), flush);
  at(999, close);

  return {
    seconds,
    enforce: (numbers) => gate.enforce(numbers, nowMs),
    run(untilMs) {
      for (let event = events.next(untilMs); event !== null; event = events.next(untilMs)) {
        nowMs = event.atMs;
        event.run();
      }
      nowMs = untilMs;
    },
    telemetry: () => flushes.shift() ?? { kind: 'missing', reason: 'no_data' },
    pool: () => ({
      waiting: poolQueue.length,
      busyRatio: service.pool === null ? 0 : held / service.pool.connections,
    }),
  };
}
