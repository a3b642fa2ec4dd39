/** All that a plant is at a moment, its record aside: what a copy takes with it. Stage: simulate. */
import { createEventQueue, type EventQueue } from './event-queue.js';
import { createFifo, type Fifo } from './fifo.js';
import { createGate, type Gate } from './gate.js';
import { drawFrom, streamStates } from './random.js';
import { createRequests, type Requests } from './requests.js';

export interface PlantState {
  nowMs: number;
  /** First attempts so far. */
  arrived: number;
  /** When the next slot, second and flush are due. */
  slotMs: number;
  secondMs: number;
  flushMs: number;
  inFlight: number;
  /** Workers that have a request, and those of them that compute. */
  working: number;
  computing: number;
  /** Connections. */
  held: number;
  random: Uint32Array;
  events: EventQueue;
  requests: Requests;
  /** All admitted whose timeout is not over, the oldest first. */
  timeouts: Fifo;
  workerQueue: Fifo;
  poolQueue: Fifo;
  gate: Gate;
}

/** Which stream of randomness is whose; the first is that of the arrivals. */
export const STREAMS = { app: 1, database: 2, upstream: 3, backoff: 4 } as const;

export function stateAtStart(seed: number): PlantState {
  const random = streamStates(seed, 1 + Object.keys(STREAMS).length);
  return {
    nowMs: 0,
    arrived: 0,
    slotMs: 0,
    secondMs: 1000,
    // The service flushes out of step with the ticks.
    flushMs: 370 + 500 * drawFrom(random, STREAMS.backoff)(),
    inFlight: 0,
    working: 0,
    computing: 0,
    held: 0,
    random,
    events: createEventQueue(),
    requests: createRequests(),
    timeouts: createFifo(),
    workerQueue: createFifo(),
    poolQueue: createFifo(),
    gate: createGate(),
  };
}

/** Each field by name and in the order of `stateAtStart`: the plant is quick while all states have one shape. */
export function copyState(state: PlantState): PlantState {
  return {
    nowMs: state.nowMs,
    arrived: state.arrived,
    slotMs: state.slotMs,
    secondMs: state.secondMs,
    flushMs: state.flushMs,
    inFlight: state.inFlight,
    working: state.working,
    computing: state.computing,
    held: state.held,
    random: state.random.slice(),
    events: state.events.copy(),
    requests: state.requests.copy(),
    timeouts: state.timeouts.copy(),
    workerQueue: state.workerQueue.copy(),
    poolQueue: state.poolQueue.copy(),
    gate: state.gate.copy(),
  };
}
