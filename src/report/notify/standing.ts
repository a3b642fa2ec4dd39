/** What fires, minute by minute: who answers for it, when it is told again, and its end once nobody sees it any more. Stage: report. */
import type { Clock } from '../../clock.js';
import type { Alert } from './alert.js';
import type { KnownAlert, KnownAlerts } from './known-alerts.js';
import { REPEAT_MS } from './templates.js';

/** What this daemon has told, or looks after, by key. */
export interface Told {
  known: KnownAlert;
  /** This daemon told its beginning, or answers for it since. */
  told: boolean;
  /** Redis could not say whether others know it. */
  unsaved: boolean;
}

export interface Standing {
  /** This daemon sees that they fire. */
  sees(keys: Iterable<string>): void;
  /** Its end is being told: nothing is written for it any more. */
  ended(key: string): void;
  /** One look at all that is known. Never rejects. */
  sweep(): Promise<void>;
}

/** What still fires is told again after so long. */
const REMIND_MS = 4 * 3_600_000;
/** Events, and what is over, are known for so long, then forgotten. */
const PAST_KEPT_MS = 86_400_000;
/** An event that nobody is known to have been told is told so long after it all the same. */
export const LATE_MS = 3_600_000;
/** Looks without a word of its keeper: then another daemon that sees it answers for it; and then it is over. */
const TAKE_OVER_LOOKS = 2;
const LOST_LOOKS = 5;

export function createStanding(of: {
  owner: string;
  clock: Clock;
  known: KnownAlerts;
  mine: Map<string, Told>;
  /** `all`: to everybody again; else only to who takes silence for its end. */
  repeat(alert: Alert, all: boolean): void;
  /** Tells this end, if nobody has. */
  end(alert: Alert): Promise<void>;
  /** Tells this event, as if it were new. */
  tell(alert: Alert): Promise<void>;
}): Standing {
  const { owner, clock, known, mine, repeat, end, tell } = of;
  /** Monotonic ms at which it was last seen to fire. */
  const seen = new Map<string, number>();
  /** How many looks have found it as it was. By looks, not by a clock: those of daemons may differ. */
  const unchanged = new Map<string, { beat: number; keeper: string; looks: number }>();
  const missing = new Set<string>();
  let sweeping: Promise<void> | null = null;

  function isSeen(key: string): boolean {
    return clock.monotonicMs() - (seen.get(key) ?? Number.NEGATIVE_INFINITY) < REPEAT_MS;
  }

  async function keep({ alert, keeper, beat, remindedMs }: KnownAlert): Promise<void> {
    const nowMs = clock.nowMs();
    // Its keeper may have died before it had told anybody: better twice than never.
    const untold = beat === 0 && keeper !== owner;
    // A clock that was set back does not silence it.
    const due = untold || Math.abs(nowMs - remindedMs) >= REMIND_MS;
    const next = { alert, keeper: owner, beat: beat + 1, remindedMs: due ? nowMs : remindedMs };
    mine.set(alert.key, { known: next, told: true, unsaved: false });
    await known.put(next);
    repeat(alert, due);
  }

  async function lookAt(found: KnownAlert): Promise<void> {
    const { alert, beat, keeper } = found;
    const { key } = alert;
    const past = alert.state !== 'firing';
    const ageMs = Math.abs(clock.nowMs() - alert.atMs);
    if (past && ageMs > PAST_KEPT_MS) return known.forget(key);
    // What is over, or was told, asks for nothing more.
    if (alert.state === 'resolved' || (past && beat > 0)) return;
    const was = unchanged.get(key);
    const looks = was?.beat === beat && was.keeper === keeper ? was.looks + 1 : 1;
    unchanged.set(key, { beat, keeper, looks });
    if (past) {
      const untold = keeper !== owner && looks > TAKE_OVER_LOOKS && ageMs <= LATE_MS;
      // Its teller died before it had told anybody.
      if (untold && (await known.takeUntold(found))) await tell(alert);
    } else if (isSeen(key)) {
      if (keeper === owner || looks > TAKE_OVER_LOOKS) await keep(found);
    } else if (looks > LOST_LOOKS) {
      await end({
        ...{ ...alert, state: 'resolved', severity: 'info', undo: null, atMs: clock.nowMs() },
        why: 'no daemon sees it any more: what it was about is gone, or who saw it is',
      });
    }
  }

  /** A Redis that was emptied forgot them; a key that is missing twice was not just ended by another. */
  async function restore(found: ReadonlySet<string>): Promise<void> {
    for (const [key, { known: record, told }] of mine) {
      if (found.has(key)) missing.delete(key);
      else if (!isSeen(key)) mine.delete(key);
      else if (!missing.has(key)) missing.add(key);
      else if (told) await known.claim(record);
    }
    for (const key of missing) if (!mine.has(key)) missing.delete(key);
    for (const key of unchanged.keys()) if (!found.has(key)) unchanged.delete(key);
    for (const key of seen.keys()) if (!isSeen(key)) seen.delete(key);
  }

  async function sweepOnce(): Promise<void> {
    const found = new Set<string>();
    try {
      await known.each((record) => {
        found.add(record.alert.key);
        return lookAt(record);
      });
      await restore(found);
    } catch {
      // Redis is away: nothing that was counted says that a keeper is silent.
      unchanged.clear();
      missing.clear();
    }
  }

  return {
    sees(keys) {
      for (const key of keys) seen.set(key, clock.monotonicMs());
    },
    ended(key) {
      seen.delete(key);
    },
    sweep() {
      sweeping ??= sweepOnce().finally(() => {
        sweeping = null;
      });
      return sweeping;
    },
  };
}
