/** Looks at each turn of a limiter that is led here, and raises what it means as alerts. Stage: daemon. */
import { readEntries, type StoredEntry } from '../actuate/audit.js';
import type { Decision, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { storedMs } from '../redis/stream-id.js';
import { MINUTE_MS } from '../redis/top-fields.js';
import { parseWindows } from '../redis/windows.js';
import { LATE_MS } from '../report/notify/standing.js';
import {
  type Change,
  firingOf,
  keysOf,
  resumeWatch,
  startWatch,
  type WatchFacts,
  watch,
} from '../report/notify/watch.js';
import { mergeMinutes, topOf } from '../report/top-window.js';
import type { Readings } from '../sense/readings.js';
import type { LimiterDeps } from './managed-limiter.js';

export interface LimiterAlerts {
  /** Turns are looked at one after another, and the loop waits for none. */
  see(turn: Turn): void;
  /** Another may have led meanwhile: what it told is read before the next look. */
  takeOver(): void;
}

export interface Turn {
  policy: Policy;
  params: Params;
  sample: Sample;
  decision: Decision;
  readings: Readings;
  details: Record<string, string>;
}

const TOP_SUBJECTS = 3;
/** Between two looks of a leader there are one or two. */
const MOST_NEWS = 20;

export function createLimiterAlerts(
  deps: Pick<LimiterDeps, 'redis' | 'address' | 'owner' | 'notifier' | 'log'>,
): LimiterAlerts {
  const { redis, address, owner, notifier, log } = deps;
  const limiter = address.name;
  let memory = startWatch();
  let resumed = false;
  let looking = false;
  /** The newest turn since the look that goes on: a slow Redis makes no queue of them. */
  let next: Turn | null = null;
  /** Of the params last seen; revisions begin anew with each epoch. null: nothing was looked at since taking over. */
  let known: { of: string; change: Change | null; newestId: string | undefined } | null = null;

  function failed(error: unknown): void {
    log.error({ event: 'alerts_failed', limiter, err: error }, (error as Error).message);
  }

  /** What the last leader wrote and had no time to tell is among it: what is known is not told twice. */
  async function changesOf(
    { epoch, revision }: Params,
    nowMs: number,
  ): Promise<Pick<WatchFacts, 'change' | 'news'>> {
    const of = `${epoch}/${revision}`;
    if (known?.of === of) return { change: known.change, news: [] };
    const after = known?.newestId;
    const entries = await newestFrom(after).catch(() => null);
    if (entries === null) return { change: null, news: [] };
    const news = entries
      .filter(({ id }) => id !== after && storedMs({ id }) > nowMs - LATE_MS)
      .map(changeOf)
      .reverse();
    const entry = entries.find((each) => each.epoch === epoch && each.revision === revision);
    const change = entry === undefined ? null : changeOf(entry);
    known = { of, change, newestId: entries[0]?.id };
    return { change, news };
  }

  /** From that entry on, itself among them; where it is not any more, Redis has lost the log: the newest of what is there. */
  async function newestFrom(id: string | undefined): Promise<StoredEntry[]> {
    const asked = { kind: 'change', limit: MOST_NEWS } as const;
    const { entries } = await readEntries(
      redis,
      address,
      id === undefined ? asked : { ...asked, from: id },
    );
    if (entries.length > 0 || id === undefined) return entries;
    return (await readEntries(redis, address, asked)).entries;
  }

  /** Whom a far higher share of denials is due to, as services count them. */
  async function heaviest(nowMs: number): Promise<string[]> {
    const minute = Math.floor(nowMs / MINUTE_MS);
    const keys = limiterKeys(address);
    const hashes = await Promise.all([minute, minute - 1].map((m) => redis.hgetall(keys.top(m))));
    const window = mergeMinutes(hashes);
    return topOf(window, 'denied', TOP_SUBJECTS).map(
      ({ subject, denied, tokens }) => `${subject} (${denied ?? tokens ?? 0})`,
    );
  }

  async function look({
    policy,
    params,
    sample,
    decision,
    readings,
    details,
  }: Turn): Promise<void> {
    if (!resumed) {
      memory = resumeWatch(await notifier.firing(keysOf(limiter, Object.keys(policy.signals))));
      resumed = true;
    }
    const { nowMs, inForce } = sample;
    const { change, news } = await changesOf(params, nowMs);
    const looked = watch(memory, {
      ...{ limiter, owner: policy.owner ?? null, daemon: owner, nowMs, change, news },
      state: inForce.state,
      rate: inForce.rate,
      inFlightMax: inForce.inFlightMax,
      revision: params.revision,
      ...holdEnd(params, nowMs),
      // In other modes the law moves nothing.
      atFloorTicks: params.mode === 'auto' ? (decision.terms.atFloorTicks ?? 0) : 0,
      signals: Object.fromEntries(
        Object.entries(sample.signals).map(([name, { fresh, reason }]) => [
          name,
          { lost: isLost(fresh, reason), why: details[name] ?? reason ?? '' },
        ]),
      ),
      traffic: trafficOf(readings.telemetry),
      subjectsMax: policy.limiter.subjects?.max ?? null,
    });
    memory = looked.memory;
    for (const alert of looked.alerts) {
      if (alert.kind !== 'denied' || alert.state !== 'firing') continue;
      const top = await heaviest(nowMs).catch(() => []);
      if (top.length > 0) alert.why = `denied most, of the last two minutes: ${top.join(', ')}`;
    }
    notifier.raise(looked.alerts);
    const firing = firingOf(memory);
    if (firing.length > 0) notifier.sees(firing);
  }

  async function lookAtNewest(): Promise<void> {
    looking = true;
    while (next !== null) {
      const turn = next;
      next = null;
      await look(turn).catch(failed);
    }
    looking = false;
  }

  return {
    see(turn) {
      next = turn;
      if (!looking) void lookAtNewest();
    },
    takeOver() {
      resumed = false;
      known = null;
    },
  };
}

/** Reasons of a service that rests, not of a source that is lost. */
const RESTS: readonly unknown[] = ['thin', 'no_traffic', 'not_started'];

function isLost(fresh: boolean, reason: string | undefined): boolean | null {
  if (fresh || RESTS.includes(reason)) return false;
  return reason === undefined ? null : true;
}

/** The nearest end of a person's hold that ends by itself. */
function holdEnd(
  { pinnedUntil, frozenUntil, heldBy, windows }: Params,
  nowMs: number,
): Pick<WatchFacts, 'holdEndsMs' | 'heldBy' | 'boundsEnd'> {
  const { bounds } = parseWindows(windows);
  const boundsMs = bounds?.untilMs ?? 0;
  const ends = [pinnedUntil, frozenUntil, boundsMs].filter((ms) => ms > nowMs);
  if (ends.length === 0) return { holdEndsMs: null, heldBy };
  const holdEndsMs = Math.min(...ends);
  if (bounds === undefined || boundsMs !== holdEndsMs) return { holdEndsMs, heldBy };
  return { holdEndsMs, heldBy: bounds.by, boundsEnd: true };
}

function trafficOf(telemetry: Readings['telemetry']): WatchFacts['traffic'] {
  if (telemetry.kind === 'missing') return null;
  const { offered, denied, fallback = 0, slowDecisions = 0, overflow = 0 } = telemetry;
  const all = Object.values(denied).reduce((sum, count) => sum + count, 0);
  return { offered, denied: all, fallback, slow: slowDecisions, overflow };
}

function changeOf({ id, epoch, revision, body }: StoredEntry): Change {
  const { actor, reason, sentence, detail } = body;
  const { to } = (detail?.server ?? {}) as { to?: unknown };
  return {
    ...{ epoch, revision, reason, sentence },
    who: `${actor.kind} ${actor.name}`,
    atMs: storedMs({ id }),
    server: typeof to === 'string' ? to : null,
  };
}
