/**
 * The plant in virtual time: clients with timeouts and retries → token bucket and in-flight cap → queue → workers with
 * contention → database pool → upstream. Deterministic for a seed. Stage: simulate.
 */
import type { Readings } from '../sense/readings.js';
import type { Second } from './counts.js';
import type { Enforced } from './gate.js';
import { copyState, type PlantState, STREAMS, stateAtStart } from './plant-state.js';
import { drawFrom, drawTimes } from './random.js';
import { createRecord } from './record.js';
import { ANSWERED, EXPIRED, GONE } from './requests.js';
import type { Load } from './scenario.js';
import type { ClientModel, ServiceModel } from './service.js';
import { drawTraffic, SLOT_MS, type Traffic } from './traffic.js';

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
  /** Arrivals drawn before, from the same load and seed. */
  traffic?: Traffic;
  /** Keep only what is answered in each second. */
  lean?: boolean;
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
  /** Another plant that goes on from here by itself; its seconds begin anew. */
  fork(): Plant;
}

/** What happens at an event. */
const COMPUTED = 1;
const RELEASED = 2;
const ENDED = 3;
const FAILED = 4;
const RETRIES = 5;

const FLUSH_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;

export function createPlant(options: PlantOptions): Plant {
  const traffic = options.traffic ?? drawTraffic(options.load, options.durationMs, options.seed);
  return plantFrom(options, traffic, stateAtStart(options.seed));
}

function plantFrom(options: PlantOptions, traffic: Traffic, s: PlantState): Plant {
  const { service, clients, goodMs, failureCode, lean = false } = options;
  const { timeoutMs } = clients;
  const { arrivals, slots } = traffic;
  const { events, requests, timeouts, workerQueue, poolQueue, gate } = s;
  const appMs = drawTimes(service.app, drawFrom(s.random, STREAMS.app));
  const holdMs = service.pool && drawTimes(service.pool.hold, drawFrom(s.random, STREAMS.database));
  const upstream = drawFrom(s.random, STREAMS.upstream);
  const backoff = drawFrom(s.random, STREAMS.backoff);
  const record = createRecord({ goodMs, failureCode, lean });
  const conditionsAt = (ms: number) =>
    slots[Math.min(slots.length - 1, Math.floor(ms / SLOT_MS + 1e-6))]!;
  let now = conditionsAt(Math.max(0, s.slotMs - SLOT_MS));

  function arrive(attempt: number): void {
    record.offered(attempt === 0);
    const denied = gate.deny(s.inFlight, s.nowMs);
    if (denied !== null) {
      record.denied(denied);
      if (clients.retryDenied) again(attempt);
      return;
    }
    record.admitted();
    s.inFlight++;
    const id = requests.add(s.nowMs, attempt, gate.enforced.generation);
    timeouts.push(id);
    if (s.working < service.workers * now.replicas) work(id);
    else if (workerQueue.length < service.queueMax) workerQueue.push(id);
    else answer(id, false);
  }

  /** The timeout of the oldest is over: its client leaves unless it has its answer. */
  function expire(): void {
    const id = timeouts.shift();
    if (!requests.is(id, GONE)) {
      requests.mark(id, GONE);
      record.left(timeoutMs);
      again(requests.attempt(id));
    }
    requests.mark(id, EXPIRED);
  }

  function again(attempt: number): void {
    if (attempt >= clients.retries) return;
    events.add(s.nowMs + clients.backoffMs * (0.5 + backoff()), RETRIES, attempt + 1);
  }

  /** A worker keeps a request to its end, as a thread does; contention is among those that compute. */
  function work(id: number): void {
    s.working++;
    s.computing++;
    // Fewer replicas: the same work crowds on fewer of them.
    const n = s.computing / now.replicas;
    const others = Math.max(0, n - 1);
    const contention = 1 + service.alpha * others + service.beta * n * others;
    events.add(s.nowMs + (appMs() * contention) / now.speed, COMPUTED, id);
  }

  function computed(id: number): void {
    s.computing--;
    requests.waits(id, s.nowMs);
    if (service.pool === null) callUpstream(id);
    else if (s.held < service.pool.connections * now.replicas) hold(id);
    else poolQueue.push(id);
  }

  function hold(id: number): void {
    s.held++;
    record.waited(s.nowMs - requests.waitsMs(id));
    events.add(s.nowMs + holdMs!() / now.databaseSpeed, RELEASED, id);
  }

  /** As many as there is room for: replicas come and go. */
  function released(id: number): void {
    s.held--;
    while (poolQueue.length > 0 && s.held < service.pool!.connections * now.replicas) {
      hold(poolQueue.shift());
    }
    callUpstream(id);
  }

  function callUpstream(id: number): void {
    const fails = now.failRatio > 0 && upstream() < now.failRatio;
    const takesMs = fails ? service.upstreamFailMs : service.upstreamMs;
    if (takesMs > 0) events.add(s.nowMs + takesMs, fails ? FAILED : ENDED, id);
    else ended(id, !fails);
  }

  function ended(id: number, ok: boolean): void {
    s.working--;
    while (workerQueue.length > 0 && s.working < service.workers * now.replicas) {
      work(workerQueue.shift());
    }
    answer(id, ok);
  }

  function answer(id: number, ok: boolean): void {
    s.inFlight--;
    const heard = !requests.is(id, GONE);
    record.answered(s.nowMs - requests.atMs(id), ok, requests.generation(id), heard);
    if (heard && !ok) again(requests.attempt(id));
    requests.mark(id, ANSWERED | GONE);
  }

  function happen(kind: number, of: number): void {
    if (kind === COMPUTED) computed(of);
    else if (kind === RELEASED) released(of);
    else if (kind === RETRIES) arrive(of);
    else ended(of, kind === ENDED);
  }

  /** What comes by the clock: a slot begins, a second ends, the service flushes. */
  function byTheClock(ms: number): void {
    if (ms === s.secondMs) {
      const { rate, inFlightMax } = gate.enforced;
      const queue = workerQueue.length + poolQueue.length;
      record.closeSecond({ inFlight: s.inFlight, queue, rate, inFlightMax, open: rate === 0 });
      s.secondMs += 1000;
    } else if (ms === s.slotMs) {
      now = conditionsAt(ms);
      s.slotMs += SLOT_MS;
    } else {
      const waiting = service.pool === null ? null : poolQueue.length;
      record.flush(ms, s.inFlight, waiting, now.blind);
      s.flushMs += FLUSH_MS;
    }
  }

  return {
    seconds: record.seconds,
    enforce: (numbers) => gate.enforce(numbers, s.nowMs),
    run(untilMs) {
      let clockMs = Math.min(s.slotMs, s.secondMs, s.flushMs);
      for (;;) {
        const arrivesMs = arrivals[s.arrived]!;
        const leavesMs = timeouts.length > 0 ? requests.atMs(timeouts.first) + timeoutMs : NEVER;
        const eventMs = events.firstMs;
        let firstMs = Math.min(arrivesMs, eventMs);
        if (leavesMs < firstMs) firstMs = leavesMs;
        if (clockMs < firstMs) firstMs = clockMs;
        if (firstMs > untilMs) break;
        s.nowMs = firstMs;
        if (firstMs === clockMs) {
          byTheClock(firstMs);
          clockMs = Math.min(s.slotMs, s.secondMs, s.flushMs);
        } else if (firstMs === arrivesMs) {
          s.arrived++;
          arrive(0);
        } else if (firstMs === leavesMs) expire();
        else {
          events.take();
          happen(events.kind, events.of);
        }
      }
      s.nowMs = untilMs;
    },
    telemetry: record.telemetry,
    pool: () => ({
      waiting: poolQueue.length,
      busyRatio: service.pool === null ? 0 : s.held / service.pool.connections,
    }),
    fork: () => plantFrom(options, traffic, copyState(s)),
  };
}
