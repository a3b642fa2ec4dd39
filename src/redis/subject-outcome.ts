/** One outcome of a subject, counted once: what raises its tier, and brings it back. Stage: enforce. */
import { FlyballError } from '../errors.js';
import { encodeSubject, type LimiterKeys } from './keys.js';
import { type RedisClient, runScript } from './run-script.js';
import { outcomeScript } from './scripts.gen.js';
import { time } from './take-call.js';

/**
 * `counted`; `repeated`: this id was counted before; `unknown`: no tier of the policy knows the name; `no-tiers`: the
 * policy has none, or there are no params.
 */
export type OutcomeStatus = 'counted' | 'repeated' | 'unknown' | 'no-tiers';

export interface OutcomeReply {
  status: OutcomeStatus;
  /** Good outcomes in a row, up to what the highest tier asks for. */
  inARow: number;
  /** 0: the policy's own numbers. */
  tier: number;
  /** What the tier gives this subject; null: no bucket of its own. An override by a person beats it. */
  rate: number | null;
  capacity: number | null;
}

export interface OutcomeCall {
  keys: LimiterKeys;
  subject: string;
  name: string;
  id: string;
  nowUs?: number;
}

const STATUS: readonly OutcomeStatus[] = ['repeated', 'counted', 'unknown', 'no-tiers'];

export async function countOutcome(redis: RedisClient, call: OutcomeCall): Promise<OutcomeReply> {
  const { keys, subject, name, id } = call;
  const raw = await runScript(redis, {
    script: outcomeScript,
    keys: [
      keys.params,
      keys.standing(subject),
      keys.outcome(id),
      keys.overrides,
      keys.subjectBucket(subject),
      keys.shadowSubjectBucket(subject),
    ],
    args: [time(call.nowUs), name, encodeSubject(subject)],
  });
  const [code, inARow, tier, rate, capacity] = raw as (string | number)[];
  const status = STATUS[Number(code)];
  if (status === undefined) {
    throw new FlyballError(
      'FLYBALL_E_SCRIPT_REPLY',
      `the reply of outcome cannot be read: ${JSON.stringify(raw)?.slice(0, 200)}. Do SDK and daemon run versions that fit each other?`,
    );
  }
  const own = Number(rate) >= 0;
  return {
    status,
    inARow: Number(inARow),
    tier: Number(tier),
    rate: own ? Number(rate) : null,
    capacity: own ? Number(capacity) : null,
  };
}
