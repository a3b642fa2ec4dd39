/** The live events: opens the stream, opens it again whatever ended it, and starts from a whole snapshot each time. Stage: dashboard. */
import type { LimitersEvent, SnapshotEvent, StreamEvent, TickEvent } from '../../api/types.js';
import { ApiError, api, streamUrl } from '../client.js';
import { hear, retryDelay } from './freshness.js';
import { readSession } from './session.js';
import { addEntries, current, tellPoints, update } from './store.js';

/** So many looks without a word, and never less than this: the connection is dead, though nobody closed it. */
const DEAD_LOOKS = 4;
const DEAD_MS = 10_000;
/** Of a thousand limiters a crowded daemon may need this long for its first word. */
const FIRST_WORD_MS = 30_000;

let source: EventSource | null = null;
let retry: ReturnType<typeof setTimeout> | undefined;
let watchdog: ReturnType<typeof setTimeout> | undefined;
let failures = 0;
/** Another daemon, or the same one started again, may know nothing of the session. */
let wasLost = false;
let watched: string | null = null;

/** One limiter each second, or all (null). Called again with the same it does nothing. */
export function watch(limiter: string | null): void {
  if (source !== null && watched === limiter) return;
  watched = limiter;
  open();
}

export function close(): void {
  source?.close();
  source = null;
  clearTimeout(retry);
  clearTimeout(watchdog);
}

/** Nobody may read: nothing is tried again either. */
export function leave(): void {
  close();
  update({ connection: { kind: 'connecting' } });
}

/** Now rather than when its time has come: the network is back, or someone looks again. */
export function retryNow(): void {
  if (current().connection.kind === 'waiting') open();
}

function open(): void {
  close();
  update({ connection: { kind: 'connecting' } });
  const opened = new EventSource(streamUrl(watched));
  source = opened;
  // The browser's own reconnecting ends for ever at the first 502 of a proxy: ours does not.
  opened.onerror = () => {
    if (opened === source) failed();
  };
  const on = <E extends StreamEvent['event']>(
    event: E,
    take: (data: Extract<StreamEvent, { event: E }>['data']) => void,
  ) => {
    opened.addEventListener(event, (message) => {
      if (opened !== source) return;
      failures = 0;
      arm();
      take(JSON.parse((message as MessageEvent<string>).data));
    });
  };
  on('snapshot', takeSnapshot);
  on('limiters', takeLimiters);
  on('audit', ({ entries }) => addEntries(entries));
  on('tick', takeTick);
  arm(FIRST_WORD_MS);
}

function failed(): void {
  close();
  failures += 1;
  wasLost = true;
  const delay = retryDelay(failures, Math.random());
  update({ connection: { kind: 'waiting', retryAtMs: performance.now() + delay } });
  retry = setTimeout(open, delay);
  // A session that has ended answers no stream either, and no retry would mend that.
  void readSession();
  if (watched !== null) void leaveUnknown(watched);
}

/** Of a limiter that nobody knows there is no stream: all of them are watched, so that the page's age stays true. */
async function leaveUnknown(limiter: string): Promise<void> {
  try {
    await api.limiter(limiter);
  } catch (error) {
    const unknown = error instanceof ApiError && (error.status === 404 || error.status === 400);
    if (!unknown || watched !== limiter) return;
    watched = null;
    open();
  }
}

function arm(patienceMs?: number): void {
  clearTimeout(watchdog);
  const lookMs = current().heard?.lookMs ?? 0;
  watchdog = setTimeout(failed, patienceMs ?? Math.max(DEAD_MS, DEAD_LOOKS * lookMs));
}

/** Before the first look at Redis there is no time to count from. */
function heardOf({ atMs, lookMs, everyMs, redisAway }: TickEvent) {
  if (atMs === 0) return current().heard;
  return hear(current().heard, { atMs, lookMs, everyMs, redisAway }, performance.now());
}

function takeSnapshot(snapshot: SnapshotEvent): void {
  update({
    connection: { kind: 'live' },
    rejoins: current().rejoins + (wasLost ? 1 : 0),
    heard: heardOf(snapshot),
    rows: new Map(snapshot.limiters.map((view) => [view.limiter, view])),
  });
  if (wasLost) void readSession();
  wasLost = false;
}

function takeLimiters({ limiters, gone, points }: LimitersEvent): void {
  const rows = new Map(current().rows);
  for (const view of limiters) rows.set(view.limiter, view);
  for (const name of gone) rows.delete(name);
  update({ rows });
  tellPoints(points);
}

function takeTick(tick: TickEvent): void {
  update({ connection: { kind: 'live' }, heard: heardOf(tick) });
}
