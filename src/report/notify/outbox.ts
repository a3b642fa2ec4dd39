/** What waits for one destination: in order, bounded, so many a minute, each tried again with growing patience. Stage: report. */
import type { Clock } from '../../clock.js';
import { type Alert, severityOf } from './alert.js';
import type { Outcome } from './attempt.js';

/** More than this wait for nobody: the oldest is dropped, and counted. */
const MOST_WAITING = 2_000;
export const TRIES = 6;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
const MINUTE_MS = 60_000;

export interface OutboxOptions {
  perMinute: number;
  /** People read it: what is too much for a minute is told in one line. Programs want each. */
  merges: boolean;
  clock: Clock;
  /** 0…1, for the jitter of retries. */
  random: () => number;
  send(alert: Alert, id: string): Promise<Outcome>;
  newId(): string;
  /** `dropped`: it was never sent; `merged`: told in one line with others. */
  onEnd(alert: Alert, end: 'sent' | 'failed' | 'dropped' | 'merged', why: string): void;
}

export interface Outbox {
  put(alert: Alert): void;
  /** Nothing waits, and nothing was sent within the last minute. */
  readonly idle: boolean;
  /** Sends what can be sent within `graceMs`; what is left is dropped. */
  close(graceMs: number): Promise<void>;
}

export function createOutbox(options: OutboxOptions): Outbox {
  const { perMinute, merges, clock, random, send, newId, onEnd } = options;
  const waiting: Alert[] = [];
  /** Monotonic times of the messages of the last minute. */
  let sentAtMs: number[] = [];
  let working: Promise<void> | null = null;
  let closed = false;
  let wake = () => {};

  function pause(ms: number): Promise<void> {
    return new Promise((ok) => {
      const timer = setTimeout(ok, ms);
      timer.unref();
      wake = () => {
        clearTimeout(timer);
        ok();
      };
    });
  }

  async function work(): Promise<void> {
    while (waiting.length > 0 && !closed) {
      const nowMs = clock.monotonicMs();
      sentAtMs = sentAtMs.filter((atMs) => nowMs - atMs < MINUTE_MS);
      if (sentAtMs.length >= perMinute) {
        await pause(sentAtMs[0]! + MINUTE_MS - nowMs);
        continue;
      }
      // The last of this minute tells of all that wait: none is lost, and nobody is flooded.
      const last = sentAtMs.length === perMinute - 1 && waiting.length > 1;
      const batch = last && merges ? waiting.splice(0) : [waiting.shift()!];
      sentAtMs.push(nowMs);
      await deliver(batch.length === 1 ? batch[0]! : merged(batch), batch);
    }
  }

  async function deliver(alert: Alert, batch: readonly Alert[]): Promise<void> {
    const id = newId();
    let why = '';
    for (let tries = 1; tries <= TRIES && !closed; tries++) {
      const outcome = await send(alert, id);
      if (outcome.status === 'sent') {
        for (const each of batch) onEnd(each, batch.length === 1 ? 'sent' : 'merged', '');
        return;
      }
      why = outcome.why;
      if (!outcome.retry || tries === TRIES) break;
      const growing = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1));
      await pause(Math.max(outcome.retryAfterMs ?? 0, growing * (0.5 + random() / 2)));
    }
    for (const each of batch) onEnd(each, 'failed', why || 'the daemon stopped');
  }

  function begin(): void {
    working ??= work().finally(() => {
      working = null;
      if (waiting.length > 0 && !closed) begin();
    });
    // What nobody foresaw costs its own alert, and neither the next ones nor the daemon.
    working.catch(() => {});
  }

  return {
    put(alert) {
      if (closed) return onEnd(alert, 'dropped', 'the daemon stops');
      waiting.push(alert);
      while (waiting.length > MOST_WAITING) {
        onEnd(waiting.shift()!, 'dropped', `more than ${MOST_WAITING} wait`);
      }
      begin();
    },
    get idle() {
      const nowMs = clock.monotonicMs();
      return working === null && sentAtMs.every((atMs) => nowMs - atMs >= MINUTE_MS);
    },
    async close(graceMs) {
      const late = new Promise<void>((ok) => setTimeout(ok, graceMs).unref());
      await Promise.race([working?.catch(() => {}), late]);
      closed = true;
      wake();
      for (const alert of waiting.splice(0)) onEnd(alert, 'dropped', 'the daemon stopped');
    },
  };
}

/** Many as one: the gravest of them, naming what the others are. */
function merged(batch: readonly Alert[]): Alert {
  const order = ['critical', 'warning', 'info'];
  const gravest = [...batch].sort(
    (a, b) => order.indexOf(a.severity) - order.indexOf(b.severity),
  )[0]!;
  const counts = new Map<string, number>();
  for (const { kind, state } of batch) {
    const name = state === 'resolved' ? `${kind} over` : kind;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const limiters = [...new Set(batch.map((alert) => alert.limiter ?? 'the fleet'))];
  const shown = limiters.slice(0, 10).join(', ');
  const more = limiters.length > 10 ? ` and ${limiters.length - 10} more` : '';
  return {
    ...gravest,
    key: 'flyball/many',
    state: 'event',
    severity: gravest.state === 'resolved' ? 'info' : severityOf(gravest.kind),
    limiter: null,
    what: `${batch.length} alerts at once`,
    why: `${[...counts].map(([name, count]) => `${name} × ${count}`).join(', ')}; of ${shown}${more}`,
    numbers: [],
    undo: null,
    look: 'flyball status',
  };
}
