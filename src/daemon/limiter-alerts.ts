/** Looks at each turn of a limiter that is led here, and raises what it means as alerts. Stage: daemon. */
import { findRevision } from '../actuate/audit.js';
import type { Actor } from '../actuate/entry.js';
import type { Decision, Sample } from '../decide/types.js';
import type { Policy } from '../policy/schema.js';
import { limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { MINUTE_MS } from '../redis/top-fields.js';
import { parseWindows } from '../redis/windows.js';
import {
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

export function createLimiterAlerts(
  deps: Pick<LimiterDeps, 'redis' | 'address' | 'owner' | 'servers' | 'notifier' | 'log'>,
): LimiterAlerts {
  const { redis, address, owner, servers, notifier, log } = deps;
  const limiter = address.name;
  let memory = startWatch();
  let resumed = false;
  let looking = false;
  /** The newest turn since the look that goes on: a slow Redis makes no queue of them. */
  let next: Turn | null = null;
  /** Of the params last seen; revisions begin anew with each epoch. */
  let known: { of: string; change: WatchFacts['change'] } = { of: '', change: null };

  function failed(error: unknown): void {
    log.error({ event: 'alerts_failed', limiter, err: error }, (error as Error).message);
  }

  async function newestChange({ epoch, revision }: Params): Promise<WatchFacts['change']> {
    const of = `${epoch}/${revision}`;
    if (known.of === of) return known.change;
    const entry = await findRevision(redis, address, revision, epoch).catch(() => undefined);
    if (entry === undefined) return null;
    const body = entry?.body;
    const change =
      body === undefined
        ? null
        : { revision, who: nameOf(body.actor), reason: body.reason, sentence: body.sentence };
    known = { of, change };
    return change;
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
    const change = await newestChange(params);
    const { nowMs, inForce } = sample;
    const looked = watch(memory, {
      ...{ limiter, owner: policy.owner ?? null, daemon: owner, nowMs, change },
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
      if (alert.kind === 'failover') {
        // All limiters of that server see it: the first tells it for all.
        alert.key = `flyball/failover/${servers.serving(address)?.runId ?? nowMs}`;
        alert.limiter = null;
      }
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

function nameOf(actor: Actor | undefined): string {
  return actor === undefined ? 'unknown' : `${actor.kind} ${actor.name}`;
}
