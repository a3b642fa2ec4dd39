/** A limiter of a set whose rollout has not reached the take: asked by the shadow's keys, it denies nobody. Stage: enforce. */
import { NO_DENY_CACHE } from './deny-cache.js';
import type { LimiterParts } from './limiter-parts.js';
import type { TakeWish } from './pending-take.js';
import { shadowKeys } from './rollout-shadow.js';
import { createSetAsker, type SetAsker } from './take-all-asker.js';

/** A limiter as a set asks it. */
export type Member = LimiterParts & { readonly apart?: boolean };

/** The members as they stand to one take, and who asks for them. */
export interface Team {
  members: readonly Member[];
  asker: SetAsker;
}

/** Finds the team of a take: one for each way in which rollouts have reached it, made when it is first needed. */
export function createTeams(members: readonly LimiterParts[], deadlineMs: number) {
  const whole: Team = { members, asker: createSetAsker(members, deadlineMs) };
  const apart = members.map(standApart);
  const teams = new Map<string, Team>();

  return {
    whole,
    of(wishes: readonly TakeWish[]): Team {
      if (members.every(({ adopted }) => !adopted.rollout)) return whole;
      const reached = members.map(({ decider }, i) => decider.reaches(wishes[i]!.subject));
      if (reached.every(Boolean)) return whole;
      const pattern = reached.join();
      let team = teams.get(pattern);
      if (team === undefined) {
        const mixed = members.map((member, i) => (reached[i] ? member : apart[i]!));
        team = { members: mixed, asker: createSetAsker(mixed, deadlineMs) };
        teams.set(pattern, team);
      }
      return team;
    },
  };
}

function standApart(member: LimiterParts): Member {
  const { decider, clock } = member;
  const steps: LimiterParts['decider']['steps'] = {
    ...decider.steps,
    fromRedis: (answer, inForce, wish, _slot, nowMs) =>
      decider.apart.fromRedis(answer, inForce, wish, nowMs),
    without: (wish) => decider.apart.unknown(wish, clock.monotonicMs()),
  };
  const own = {
    apart: true,
    finder: shadowKeys(member.finder),
    denials: NO_DENY_CACHE,
    // No place in flight: the cap counts those alone for whom it is enforced.
    inFlight: Object.create(member.inFlight, { reports: { value: false } }),
    decider: { ...decider, steps },
  };
  return Object.create(member, Object.getOwnPropertyDescriptors(own));
}
