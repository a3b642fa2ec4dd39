/** The answer to takes of several limiters: all or none, with the one that leads named. Stage: enforce. */
import type { LimiterState } from '../redis/params.js';
import type { DecisionReason, DecisionSource, LimitName, TakeDecision } from './decision.js';
import type { Outcome, OutcomeInfo } from './recorder.js';
import type { Refund } from './refund-answer.js';

/**
 * What a `TakeDecision` tells, of the limiter that leads: on a denial the one that denied (of several, the one with the
 * longest wait), on admission the one with the fewest tokens left.
 */
export interface TakeAllDecision extends TakeDecision {
  /** Who denied (in shadow mode: would have denied); null when all admit. */
  readonly limiter: string | null;
  /**
   * What each limiter said, by name. On a denial those that would have admitted were not charged, and their `done`
   * does nothing; who was not asked any more is missing.
   */
  readonly decisions: Readonly<Record<string, TakeDecision>>;
}

export class SetDecision implements TakeAllDecision {
  readonly limiter: string | null;
  readonly allowed: boolean;
  readonly wouldAllow: boolean;
  readonly reason: DecisionReason;
  readonly limit: LimitName | null;
  readonly remaining: number;
  readonly retryAfterMs: number | null;
  readonly delayMs = 0;
  readonly revision: number;
  readonly epoch: number;
  readonly state: LimiterState;
  readonly generation: number;
  readonly source: DecisionSource;
  readonly subject: string | null;

  constructor(readonly decisions: Readonly<Record<string, TakeDecision>>) {
    const all = Object.entries(decisions);
    const denying = all.filter(([, each]) => !each.allowed);
    const wouldDeny = all.filter(([, each]) => !each.wouldAllow);
    const against = denying.length > 0 ? denying : wouldDeny;
    const [name, lead] =
      against.length > 0 ? most(against, waitOf) : most(all, ([, each]) => -each.remaining);
    this.limiter = against.length > 0 ? name : null;
    this.allowed = denying.length === 0;
    this.wouldAllow = wouldDeny.length === 0;
    this.reason = lead.reason;
    this.limit = lead.limit;
    this.remaining = Math.min(...all.map(([, each]) => each.remaining));
    this.retryAfterMs = this.allowed ? 0 : lead.retryAfterMs;
    this.revision = lead.revision;
    this.epoch = lead.epoch;
    this.state = lead.state;
    this.generation = lead.generation;
    this.source = lead.source;
    this.subject = lead.subject;
  }

  note(info: OutcomeInfo): void {
    for (const each of Object.values(this.decisions)) each.note(info);
  }

  done(outcome?: Outcome, info?: OutcomeInfo): void {
    for (const each of Object.values(this.decisions)) each.done(outcome, info);
  }

  /** Each limiter's decision has its own. */
  get id(): null {
    return null;
  }

  /** What all took, each from its own; the first that gives nothing back says why. */
  async refund(): Promise<Refund> {
    const all = await Promise.all(Object.values(this.decisions).map((each) => each.refund()));
    return all.find((each) => !each.refunded) ?? { refunded: true };
  }
}

type Named = [name: string, decision: TakeDecision];

const waitOf = ([, { retryAfterMs }]: Named) => retryAfterMs ?? Number.POSITIVE_INFINITY;

/** The first of those with the highest value. */
function most(of: Named[], value: (each: Named) => number): Named {
  return of.reduce((best, each) => (value(each) > value(best) ? each : best));
}
