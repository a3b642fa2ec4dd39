/** Who decides in a set: each limiter, its canary, or, before its rollout has come, its shadow, which denies nobody. Stage: enforce. */
import { NO_DENY_CACHE } from './deny-cache.js';
import { type LimiterParts, partsDeciding } from './limiter-parts.js';
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

/** Finds the team of a take: one for each way in which rollouts and canaries meet it, made when it is first needed. */
export function createTeams(members: readonly LimiterParts[], deadlineMs: number) {
  const whole: Team = { members, asker: createSetAsker(members, deadlineMs) };
  const apart = members.map(standApart);
  const teams = new Map<string, Team>();

  function decides(i: number, subject: string | null): { member: Member; as: string } {
    const own = members[i]!;
    const member = partsDeciding(own, subject);
    if (member !== own) return { member, as: 'canary' };
    return own.decider.reaches(subject)
      ? { member, as: 'own' }
      : { member: apart[i]!, as: 'apart' };
  }

  return {
    whole,
    of(wishes: readonly TakeWish[]): Team {
      const plain = ({ adopted }: Member) => !adopted.rollout && adopted.canary === undefined;
      if (members.every(plain)) return whole;
      const deciding = wishes.map(({ subject }, i) => decides(i, subject));
      if (deciding.every(({ as }) => as === 'own')) return whole;
      const pattern = deciding.map(({ as }) => as).join();
      const known = teams.get(pattern);
      // A canary that comes later is another limiter.
      if (known?.members.every((each, i) => each === deciding[i]!.member)) return known;
      const mixed = deciding.map(({ member }) => member);
      const team = { members: mixed, asker: createSetAsker(mixed, deadlineMs) };
      teams.set(pattern, team);
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
