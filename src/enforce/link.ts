/** One Redis connection as the hot path sees it: each call ends at its deadline, an outage is paid for once. Stage: enforce. */
import type { Clock } from '../clock.js';
import { FlyballError } from '../errors.js';
import { watchConnection } from './connection-fault.js';
import { createDeadlines } from './deadlines.js';
import type { RedisClient } from './options.js';

/** Consecutive failures after which Redis counts as away … */
const FAILURES_TO_DOWN = 3;
/** … if nothing has answered for this many deadlines: one long pause under load is not an outage. */
const SILENT_DEADLINES = 2;
/** Probes in a row that must answer in time before calls go to Redis again. */
const PROBES_TO_UP = 2;
const PROBE_EVERY_MS = 100;
/** A probe that is not answered is not repeated before this: a silent server must not collect a queue. */
const PROBE_PATIENCE_MS = 2_000;

/** Timers fire late, and the caller's code runs after them: this share of a deadline is kept for both. */
const LAG_SHARE = 0.06;
const LAG_MAX_MS = 3;

export type LinkEvent = 'down' | 'up' | 'lost';

/** A call, and whom to tell how it went: the hot path makes no promises of its own. */
export interface Asked<T> {
  start(): Promise<T>;
  /** `late`: after `failed`, since its deadline came first. */
  answered(value: T, late: boolean): void;
  failed(error: unknown): void;
}

export interface LinkOptions {
  redis: RedisClient;
  deadlineMs: number;
  clock: Clock;
  /** A call that reads and charges nothing. */
  probe: () => Promise<unknown>;
  onEvent: (event: LinkEvent, cause: string) => void;
}

export interface Link {
  /** False: do not call, decide without Redis. */
  readonly up: boolean;
  /** Run `call` when connected; rejects at monotonic `deadlineAtMs`, whatever the client library does. */
  within<T>(deadlineAtMs: number, call: () => Promise<T>): Promise<T>;
  /** The same, told by calls. None of them may throw. */
  ask<T>(deadlineAtMs: number, asked: Asked<T>): void;
  /**
   * Does Redis answer at all, within `patienceMs`? Then it is up again: for who has time to wait, unlike a
   * decision. Never rejects.
   */
  answers(patienceMs: number): Promise<boolean>;
  close(): void;
}

export function createLink(options: LinkOptions): Link {
  const { redis, deadlineMs, clock, probe, onEvent } = options;
  const lagMs = Math.min(LAG_MAX_MS, deadlineMs * LAG_SHARE);
  const deadlines = createDeadlines(clock);
  const connection = watchConnection(redis);
  let up = true;
  let closed = false;
  let failures = 0;
  let goodProbes = 0;
  let lastAnswerMs = Number.NEGATIVE_INFINITY;
  let connecting: Promise<void> | undefined;
  let onReady = () => {};
  let probing: ReturnType<typeof setTimeout> | undefined;

  const onClose = () => {
    if (closed) return;
    onEvent('lost', 'connection closed');
    // Not at the first attempt to connect: a service may start a moment before its Redis.
    if (lastAnswerMs !== Number.NEGATIVE_INFINITY) goDown('connection closed');
  };
  redis.on('close', onClose);
  // One node of a cluster: another, with another clock, may take its place. Whether calls still pass shows by itself.
  const onNodeGone = () => {
    if (!closed) onEvent('lost', 'a node is gone');
  };
  redis.on('-node', onNodeGone);

  function goDown(cause: string) {
    if (!up || closed) return;
    up = false;
    goodProbes = 0;
    onEvent('down', connection.why() ?? cause);
    scheduleProbe();
  }

  function failed(cause: string) {
    failures += 1;
    goodProbes = 0;
    const silentMs = clock.monotonicMs() - lastAnswerMs;
    if (failures >= FAILURES_TO_DOWN && silentMs >= SILENT_DEADLINES * deadlineMs) goDown(cause);
  }

  function answered() {
    failures = 0;
    lastAnswerMs = clock.monotonicMs();
    if (up) return;
    goodProbes += 1;
    if (goodProbes >= PROBES_TO_UP) comeUp('answers in time again');
  }

  function comeUp(cause: string) {
    up = true;
    onEvent('up', cause);
  }

  function scheduleProbe() {
    if (up || closed) return;
    probing = setTimeout(runProbe, PROBE_EVERY_MS);
    probing.unref();
  }

  async function runProbe() {
    const call = ready() ? probe() : Promise.reject(new Error('not connected'));
    // In time or not decides; but the next probe waits until this one has left the client's queue.
    const settled = call.then(
      () => {},
      () => {},
    );
    try {
      await expire(call, deadlineMs);
      answered();
    } catch (error) {
      failed(String(error));
      await expire(settled, PROBE_PATIENCE_MS).catch(() => {});
    }
    scheduleProbe();
  }

  function ready(): boolean {
    return redis.status === 'ready';
  }

  /** One listener, however many calls wait. */
  function connected(): Promise<void> {
    if (redis.status === 'wait') redis.connect().catch(() => {});
    connecting ??= new Promise((ok) => {
      onReady = () => {
        connecting = undefined;
        ok();
      };
      redis.once('ready', onReady);
    });
    return connecting;
  }

  async function callOnceConnected<T>(deadlineAtMs: number, call: () => Promise<T>): Promise<T> {
    await connected();
    if (clock.monotonicMs() >= deadlineAtMs) throw new Error('connected too late');
    return call();
  }

  /** Whatever `start` throws is an answer that did not come. */
  function begin<T>(deadlineAtMs: number, asked: Asked<T>): Promise<T> {
    try {
      return ready() ? asked.start() : callOnceConnected(deadlineAtMs, () => asked.start());
    } catch (error) {
      return Promise.reject(error);
    }
  }

  function ask<T>(deadlineAtMs: number, asked: Asked<T>): void {
    const fail = (error: unknown) => {
      failed(error instanceof Error ? error.message : String(error));
      asked.failed(error);
    };
    const atMs = deadlineAtMs - lagMs;
    if (atMs <= clock.monotonicMs()) {
      fail(new Error('no time left to ask'));
      return;
    }
    const waiting = deadlines.add(atMs, () => fail(tooLate()));
    begin(deadlineAtMs, asked).then(
      (value) => {
        const late = waiting.over;
        deadlines.end(waiting);
        if (!late) answered();
        asked.answered(value, late);
      },
      (error) => {
        if (waiting.over) return;
        deadlines.end(waiting);
        fail(error);
      },
    );
  }

  return {
    get up() {
      return up;
    },
    ask,
    within: (deadlineAtMs, start) =>
      new Promise((ok, no) => ask(deadlineAtMs, { start, answered: ok, failed: no })),
    async answers(patienceMs) {
      if (up) return true;
      if (closed || !ready()) return false;
      try {
        await expire(probe(), patienceMs);
      } catch {
        return false;
      }
      if (!up && !closed) comeUp('answers again');
      return up;
    },
    close() {
      closed = true;
      connection.close();
      clearTimeout(probing);
      redis.off('close', onClose);
      redis.off('-node', onNodeGone);
      redis.off('ready', onReady);
    },
  };
}

/**
 * Reject after `ms`. A timer that fires late (the loop was busy) first lets the sockets speak: a reply that
 * lies there already is an answer in time.
 */
export function expire<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise<T>((ok, no) => {
    const timer = setTimeout(() => setImmediate(() => no(tooLate())), Math.max(0, ms));
    promise.then(
      (value) => {
        clearTimeout(timer);
        ok(value);
      },
      (error) => {
        clearTimeout(timer);
        no(error);
      },
    );
  });
}

function tooLate(): FlyballError {
  return new FlyballError('FLYBALL_E_ENFORCE_DEADLINE', 'Redis did not answer in time');
}
