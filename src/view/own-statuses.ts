/** What this daemon stored in `:status` itself while somebody looks: of the limiters that are read next, and of those that stir. Stage: daemon, api. */
import { type Clock, systemClock } from '../clock.js';
import type { LimiterStatus } from '../report/status.js';

export interface OwnStatuses {
  /** After it is stored. While nobody looks nothing is kept of it. */
  tell(limiter: string, status: LimiterStatus): void;
  /** Those that are read next; with `all` somebody looks at all others too, and who stirs is kept. */
  want(limiters: ReadonlySet<string>, all: boolean): void;
  /** null: none is kept. */
  of(limiter: string): LimiterStatus | null;
  /** Does this daemon decide for it these days? Then nothing happens to it unheard. */
  leads(limiter: string): boolean;
  /** Of these something is not as it was when they were read last; who waits longest comes first. */
  readonly stirred: ReadonlySet<string>;
  /** It is read now, with all that was told until now. */
  read(limiter: string): void;
}

/** A tick or two may be left out. */
const LEADS_TICKS = 3;
/** Missed for so long an objective is no play around its setpoint any more. */
const MISSED_MS = 3000;

export function createOwnStatuses(clock: Clock = systemClock): OwnStatuses {
  let wanted: ReadonlySet<string> = new Set();
  let all = false;
  const known = new Map<string, LimiterStatus>();
  const heard = new Map<string, Heard>();
  const stirred = new Set<string>();

  function hear(limiter: string, status: LimiterStatus): void {
    const untilMs = clock.monotonicMs() + LEADS_TICKS * status.tickMs;
    const before = heard.get(limiter);
    if (before !== undefined && isAsHeard(before, status)) {
      before.leadsUntilMs = untilMs;
      return;
    }
    heard.set(limiter, heardOf(status, untilMs));
    if (before !== undefined) stirred.add(limiter);
  }

  return {
    tell(limiter, status) {
      if (all) hear(limiter, status);
      if (wanted.has(limiter) || stirred.has(limiter)) known.set(limiter, status);
    },
    want(limiters, others) {
      wanted = limiters;
      all = others;
      if (!all) for (const kept of [heard, stirred]) kept.clear();
      for (const name of known.keys()) {
        if (!limiters.has(name) && !stirred.has(name)) known.delete(name);
      }
    },
    of: (limiter) => known.get(limiter) ?? null,
    leads: (limiter) => (heard.get(limiter)?.leadsUntilMs ?? 0) > clock.monotonicMs(),
    stirred,
    read: (limiter) => stirred.delete(limiter),
  };
}

/** What a person should see soon of a limiter: all but numbers that play about. */
interface Heard {
  leadsUntilMs: number;
  epoch: number;
  revision: number;
  decided: string;
  state: string | undefined;
  held: string | undefined;
  file: string;
  faults: number;
  signals: Record<string, string>;
}

function heardOf(status: LimiterStatus, leadsUntilMs: number): Heard {
  const { epoch, revision, file, faults, sample, decision } = status;
  const signals = Object.entries(sample.signals).map(([name, one]) => [name, wordOf(one)]);
  return {
    ...{ leadsUntilMs, epoch, revision, file, faults: faults.length },
    ...{ decided: decision.state, state: sample.inForce?.state, held: sample.inForce?.held },
    signals: Object.fromEntries(signals),
  };
}

/** Asked of a thousand a second: it makes nothing. */
function isAsHeard(before: Heard, status: LimiterStatus): boolean {
  const { epoch, revision, file, faults, sample, decision } = status;
  if (before.epoch !== epoch || before.revision !== revision) return false;
  if (before.file !== file || before.faults !== faults.length) return false;
  if (before.decided !== decision.state || before.state !== sample.inForce?.state) return false;
  if (before.held !== sample.inForce?.held) return false;
  for (const name in sample.signals) {
    if (before.signals[name] !== wordOf(sample.signals[name]!)) return false;
  }
  return true;
}

function wordOf({ reason, missedMs = 0 }: LimiterStatus['sample']['signals'][string]): string {
  const lost: string = reason ?? '';
  return missedMs >= MISSED_MS ? `${lost} missed` : lost;
}
