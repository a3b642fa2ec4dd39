/** Why a revision is what it is: the decision recomputed from its audit entry by the function that took it. Stage: actuate. */
import { type DecideState, type Decision, LAW_VERSIONS, type Sample } from '../decide/types.js';
import { FlyballError } from '../errors.js';
import { turn } from '../guard/turn.js';
import { type Policy, policySchema } from '../policy/schema.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { RedisClient } from './actuator.js';
import { findRevision, type StoredEntry } from './audit.js';

/**
 * - `agrees`: the same inputs give the same decision now.
 * - `differs`: they do not; `differences` says where (a changed entry, or a law that is not deterministic).
 * - `other_version`: another version of the law took it; recomputing would prove nothing.
 * - `not_a_decision`: a person, an adopted policy or a settling wrote it; the entry itself is the reason.
 * - `incomplete`: the policy it names is no longer stored, or it or the inputs cannot be read.
 */
export type ExplainVerdict =
  | 'agrees'
  | 'differs'
  | 'other_version'
  | 'not_a_decision'
  | 'incomplete';

export interface Explanation {
  verdict: ExplainVerdict;
  /** One sentence for people. */
  sentence: string;
  entry: StoredEntry;
  /** What the law decides now from the same inputs. */
  decision?: Decision;
  differences?: string[];
  /** Under which it was taken, where that is still stored. */
  policy?: Policy;
}

/** Recomputes the decision behind `revision` (in the newest epoch that has it, or in `epoch`). */
export async function explain(
  redis: RedisClient,
  address: LimiterAddress,
  revision: number,
  epoch?: number,
): Promise<Explanation> {
  const entry = await findRevision(redis, address, revision, epoch);
  if (entry === null) {
    throw new FlyballError(
      'FLYBALL_E_AUDIT_NO_REVISION',
      `${address.name} has no audit entry for revision ${revision}. \`flyball audit ${address.name}\` lists the revisions that are kept.`,
    );
  }
  return explainEntry(redis, address, entry);
}

/** The same for an entry at hand, also for notes that record what the law would have done. */
export async function explainEntry(
  redis: RedisClient,
  address: LimiterAddress,
  entry: StoredEntry,
): Promise<Explanation> {
  const { body } = entry;
  const { law, sample, stateBefore } = body;
  if (law === undefined || sample === undefined || stateBefore === undefined) {
    return {
      verdict: 'not_a_decision',
      sentence: `No law took it: ${body.actor.name} wrote it (${body.reason}). ${body.sentence}`,
      entry,
    };
  }
  const [name = '', version = ''] = law.split('@');
  const running = LAW_VERSIONS[name];
  if (String(running) !== version) {
    const here = running === undefined ? 'this build has no such law' : `this build has ${running}`;
    return {
      verdict: 'other_version',
      sentence: `Taken by version ${version} of the law ${name}; ${here}, so it is not recomputed. ${body.sentence}`,
      entry,
    };
  }
  const [text = null] = await redis.mget(limiterKeys(address).policyVersion(body.policyHash));
  if (text === null) {
    return {
      verdict: 'incomplete',
      sentence: `The policy it names (${body.policyHash.slice(0, 12)}) is no longer stored, so it is not recomputed. ${body.sentence}`,
      entry,
    };
  }
  try {
    return recompute(entry, policySchema.parse(JSON.parse(text)), stateBefore, sample);
  } catch {
    return {
      verdict: 'incomplete',
      sentence: `The policy it names (${body.policyHash.slice(0, 12)}) or its recorded inputs cannot be read, so it is not recomputed. ${body.sentence}`,
      entry,
    };
  }
}

function reserveText(reserve: Decision['reserve']): string {
  return reserve === undefined ? 'none' : `${reserve.default}, ${reserve.sheddable}`;
}

function recompute(
  entry: StoredEntry,
  policy: Policy,
  stateBefore: DecideState,
  sample: Sample,
): Explanation {
  const { body } = entry;
  const { decision } = turn(policy, stateBefore, sample);
  const differences: string[] = [];
  const compare = (what: string, then: unknown, now: unknown) => {
    if (then !== now) differences.push(`${what} was ${String(then)}, is now ${String(now)}`);
  };
  compare('state', body.after?.state, decision.state);
  compare('rate', body.after?.rate, decision.rate);
  compare('capacity', body.after?.capacity, decision.capacity);
  compare('inFlightMax', body.after?.inFlightMax, decision.inFlightMax);
  compare('reserve', reserveText(body.after?.reserve), reserveText(decision.reserve));
  compare('reason', body.reason, decision.reason);
  const agrees = differences.length === 0;
  return {
    verdict: agrees ? 'agrees' : 'differs',
    sentence: agrees
      ? `Recomputed from the recorded inputs by ${body.law}: the same decision. ${body.sentence}`
      : `Recomputed from the recorded inputs by ${body.law}: not the same decision (${differences.join('; ')}).`,
    entry,
    decision,
    policy,
    ...(agrees ? {} : { differences }),
  };
}
