/** Takes of several limiters of one group, decided at once: all admit and all are charged, or none is. Stage: enforce. */
import { FlyballError } from '../errors.js';
import { checkFunction, costRefused } from './arguments.js';
import { Decision, FlyballDeniedError } from './decision.js';
import { repeatDenial } from './deny-cache.js';
import type { Limiter } from './limiter.js';
import type { TakeWish } from './pending-take.js';
import { endFailed } from './recorder.js';
import { createTeams, type Member } from './take-all-apart.js';
import type { SetAnswer } from './take-all-asker.js';
import {
  checkMembers,
  readWishes,
  type TakeAllOptions,
  type TakeAllWish,
} from './take-all-checks.js';
import { SetDecision, type TakeAllDecision } from './take-all-decision.js';
import { admits, bystander, type Held, overCap, placeOf, verdictOf } from './take-all-member.js';
import { traced } from './tracing.js';

export interface TakeAll {
  /** The limiters' names, in order. */
  readonly names: readonly string[];
  /**
   * Take from all or from none, in one call. `wishes` by limiter name; who is not named gives one token of its total.
   * Resolves and rejects as `Limiter.take` does. Call `done` on what was admitted.
   */
  take(
    wishes?: Readonly<Record<string, TakeAllWish>>,
    options?: TakeAllOptions,
  ): Promise<TakeAllDecision>;
  /** As `Limiter.run`: denied, it rejects with `FlyballDeniedError` and calls nothing. */
  run<T>(
    wishes: Readonly<Record<string, TakeAllWish>> | undefined,
    fn: (decision: TakeAllDecision) => T | Promise<T>,
    options?: TakeAllOptions,
  ): Promise<T>;
  /** A self-test for the start: rejects when by Redis the limiters lie in different groups, or keep no buckets. */
  ready(): Promise<void>;
}

/**
 * Create once, beside the limiters: `const checkout = takeAll([global, tenant, user])`. They share a `group`, a Redis
 * client and the token bucket. They stay yours: take from each by itself too, and close each.
 */
export function takeAll(limiters: readonly Limiter[]): TakeAll {
  const members = checkMembers(limiters);
  const names = members.map(({ resolved }) => resolved.name);
  const { clock } = members[0]!;
  const deadlineMs = Math.min(...members.map((each) => each.deadlineMs));
  const teams = createTeams(members, deadlineMs);

  function release(members: readonly Member[], held: readonly (Held | Decision)[]): void {
    for (const [i, each] of held.entries()) {
      if (!(each instanceof Decision) && each.slot) members[i]!.inFlight.release(each.slot);
    }
  }

  async function decide(wishes: TakeWish[], signal?: AbortSignal): Promise<TakeAllDecision> {
    const startedMs = clock.monotonicMs();
    const { members, asker } = teams.of(wishes);
    const known = members.map(({ link, denials }, i) => {
      const denial = link.up ? denials.find(wishes[i]!, startedMs) : null;
      return denial && repeatDenial(denial, wishes[i]!.subject, startedMs);
    });
    if (known.some(Boolean)) return conclude(members, known, wishes, startedMs);

    const places = await Promise.all(
      members.map((each, i) => placeOf(each, wishes[i]!, startedMs)),
    );
    const refused = places.map((each) => (each instanceof Decision ? each : null));
    if (refused.some(Boolean)) {
      release(members, places);
      return conclude(members, refused, wishes, startedMs);
    }
    const held = places as Held[];
    try {
      const up = members.every(({ link }) => link.up);
      const answer = up ? await asker.ask(wishes, startedMs + deadlineMs, signal) : null;
      const bad = answer?.answers.findIndex(({ reason }) => reason === 'bad_cost') ?? -1;
      if (bad >= 0) throw costRefused(wishes[bad]!.cost);
      const decisions = answer
        ? byRedis(members, wishes, held, answer, startedMs)
        : withoutRedis(members, wishes, held);
      return conclude(members, decisions, wishes, startedMs);
    } catch (error) {
      release(members, held);
      throw error;
    }
  }

  function byRedis(
    members: readonly Member[],
    wishes: TakeWish[],
    held: Held[],
    said: SetAnswer,
    startedMs: number,
  ) {
    const all = said.answers.every((each, i) => admits(members[i]!, each, said.inForce[i]!));
    return members.map((member, i) => {
      const [answer, inForce] = [said.answers[i]!, said.inForce[i]!];
      const verdict = verdictOf(member, wishes[i]!, held[i]!, { answer, inForce, all, startedMs });
      // Of a mode that has ended meanwhile: what was taken is enforced, and can be given back.
      const beyond = all && held[i]!.overCap && inForce.mode === 'shadow';
      return beyond ? overCap(member, held[i]!, verdict) : verdict;
    });
  }

  /** Each by its own choice of what to do then; what one process has taken here is given back if another denies. */
  function withoutRedis(members: readonly Member[], wishes: TakeWish[], held: Held[]): Decision[] {
    const alone = members.map((member, i) =>
      member.decider.steps.without(wishes[i]!, held[i]!.slot),
    );
    if (alone.every(({ allowed }) => allowed)) return alone;
    return alone.map((decision, i) => {
      if (!decision.allowed) return decision;
      const { subject, cost } = wishes[i]!;
      const { local } = members[i]!.decider.steps;
      if (decision.source === 'local') local.giveBack(subject, cost);
      return bystander(members[i]!, held[i]!, decision);
    });
  }

  /** A denial counts for those that denied, an admission for all; null: was not asked any more. */
  function conclude(
    members: readonly Member[],
    decisions: (Decision | null)[],
    wishes: TakeWish[],
    startedMs: number,
  ): TakeAllDecision {
    const all = decisions.every((each) => each?.allowed);
    const shown: Record<string, Decision> = {};
    for (const [i, decision] of decisions.entries()) {
      if (decision === null) continue;
      shown[names[i]!] = decision;
      if (decision.allowed && !all) continue;
      const { recorder, decider } = members[i]!;
      recorder.offered();
      decider.steps.record(decision, wishes[i]!, startedMs);
    }
    return new SetDecision(shown);
  }

  async function take(
    wishes: Readonly<Record<string, TakeAllWish>> = {},
    options: TakeAllOptions = {},
  ): Promise<TakeAllDecision> {
    const closed = members.find((each) => each.closed);
    if (closed) {
      throw new FlyballError(
        'FLYBALL_E_ENFORCE_CLOSED',
        `takeAll: limiter ${closed.resolved.name} is closed. Close limiters last.`,
      );
    }
    const read = readWishes(members, wishes, options);
    const { tracer } = members[0]!.tracing;
    if (tracer === null) return decide(read, options.signal);
    return traced(tracer, 'take_all', { limiter: names }, () => decide(read, options.signal));
  }

  return {
    names,
    take,
    async run(wishes, fn, options) {
      checkFunction(fn);
      for (const { inFlight } of members) inFlight.setReports();
      const decision = await take(wishes, options);
      if (!decision.allowed) throw new FlyballDeniedError(decision.limiter!, decision);
      try {
        const result = await fn(decision);
        decision.done('ok');
        return result;
      } catch (error) {
        endFailed(decision, error);
        throw error;
      }
    },
    async ready() {
      const fault = await teams.whole.asker.fault();
      if (fault) throw fault;
    },
  };
}
