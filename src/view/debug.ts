/** Reads what decides a subject's takes, and asks Redis for the decision without letting it write. Stage: cli, api. */
import { readParams } from '../actuate/actuator.js';
import { compileRollout, rolloutPart } from '../enforce/rollout.js';
import { compileRoutes } from '../enforce/route-table.js';
import { ALGORITHMS, type Algorithm, type AlgorithmTerms } from '../redis/algorithms.js';
import { askOnly } from '../redis/ask-only.js';
import type { TakeAnswer, TakeCall, TakeRequest } from '../redis/calls.js';
import { effective } from '../redis/effective.js';
import {
  encodeSubject,
  type LimiterAddress,
  type LimiterKeys,
  limiterKeys,
} from '../redis/keys.js';
import { type Params, parseParams } from '../redis/params.js';
import { readTakeReply } from '../redis/replies.js';
import { isPartial, parseRollout } from '../redis/rollout.js';
import type { RedisClient } from '../redis/run-script.js';
import { subjectTakeCall } from '../redis/subject-call.js';
import { parseOverride } from '../redis/subject-override.js';
import { crowdTerms } from '../redis/subject-terms.js';
import { takeCall } from '../redis/take-call.js';
import { answerSentence, reserveOf, stepsOf, unmanagedSteps } from './debug-steps.js';
import type { DebugAnswer, DebugFacts, DebugQuery, DebugView } from './debug-types.js';
import { storedSamples } from './decisions.js';
import { listLimiters, type Session } from './limiters.js';
import { routesOf } from './status-reach.js';
import { readTop, TOP_MINUTES } from './top.js';
import { liveProcesses } from './traffic.js';

const SAMPLES_SHOWN = 10;

export async function readDebug(
  session: Session,
  address: LimiterAddress,
  query: DebugQuery,
): Promise<DebugView> {
  const { redis } = session;
  const keys = limiterKeys(address);
  const { params, nowUs } = await readParams(redis, address);
  const samples = await storedSamples(
    redis,
    keys,
    ({ hashed, subject }) => !hashed && subject === query.subject,
    SAMPLES_SHOWN,
  );
  const asked = { limiter: address.name, ...pick(query), atMs: Math.floor(nowUs / 1000) };
  if (params === null) {
    const key = keys.subjectBucket(query.subject);
    const steps = unmanagedSteps(address.name);
    const rest = { epoch: null, revision: null, key, keptMs: null, answer: null, recent: null };
    return { ...asked, ...rest, steps, samples };
  }
  const { facts, key } = await readDebugFacts(session, address, query, params, nowUs);
  return {
    ...asked,
    ...{ epoch: params.epoch, revision: params.revision, key, keptMs: facts.keptMs },
    answer: facts.answer,
    steps: stepsOf(facts),
    recent: await readRecent(session, address, query.subject),
    samples,
  };
}

/** The heaviest are counted by what they took, and by how often they were denied. */
async function readRecent(
  session: Session,
  address: LimiterAddress,
  subject: string,
): Promise<DebugView['recent']> {
  for (const by of ['taken', 'denied'] as const) {
    const asked = { by, minutes: TOP_MINUTES['5m'], limit: Number.POSITIVE_INFINITY };
    const { subjects } = await readTop(session, address, asked);
    const mine = subjects.find((each) => !each.hashed && each.subject === subject);
    if (mine !== undefined) return { tokens: mine.tokens, denied: mine.denied };
  }
  return null;
}

function pick({ subject, cost, priority }: DebugQuery) {
  return { subject, cost, priority };
}

async function readDebugFacts(
  session: Session,
  address: LimiterAddress,
  query: DebugQuery,
  params: Params,
  nowUs: number,
): Promise<{ facts: DebugFacts; key: string }> {
  const { redis } = session;
  const keys = limiterKeys(address);
  const { subject } = query;
  const nowMs = nowUs / 1000;
  const now = effective(params, nowMs);
  const rollout = parseRollout(params.rollout);
  const enforces = params.mode === 'recommend' || params.mode === 'auto';
  // Whoever chance leaves out is in shadow; what is shown is the enforced answer.
  const reach = enforces ? compileRollout(address.name, params.rollout, () => 0) : null;
  const reached = reach === null || reach.reaches(subject);
  const shadow = params.mode === 'shadow' ? 'mode' : reached ? null : 'rollout';
  const terms = termsOf(params);
  const kind = KIND[terms.algorithm];
  const inShadow = shadow !== null;
  const key =
    kind === 'b'
      ? inShadow
        ? keys.shadowSubjectBucket(subject)
        : keys.subjectBucket(subject)
      : keys.taken(kind, subject, inShadow);
  const { index } = keys.crowd(kind, inShadow);
  const { max: most } = crowdTerms(params.subjectTerms);
  const ask = (take: TakeRequest) => asked(redis, keys, take, { params, terms, inShadow });
  const { cost, priority } = query;
  const [override, streak, ttl, live, score, shares, total, both, answer] = await Promise.all([
    redis.hget(keys.overrides, encodeSubject(subject)),
    redis.get(keys.standing(subject)),
    redis.pttl(key),
    most === null ? 0 : redis.zcard(index),
    most === null ? null : redis.zscore(index, encodeSubject(subject)),
    redis.hgetall(keys.inFlight),
    ask({ subject: null, cost: 0, priority: 'critical' }),
    ask({ subject, cost: 0, priority: 'critical' }),
    ask({ subject, cost, priority }),
  ]);
  const taken = answer ?? keptFromWriting(query, params, now.capacity, { total, both });
  const { processes = 0, reporting = 0 } = liveProcesses(shares, nowUs);
  const facts: Omit<DebugFacts, 'answer'> = {
    limiter: address.name,
    ...{ query, nowMs, params, now, shadow },
    byChance: isPartial(rollout) && rollout.by === 'request' && enforces,
    part: rolloutPart(address.name, subject),
    override: override === null ? null : parseOverride(encodeSubject(subject), override),
    streak: streak !== null && /^\d+$/.test(streak) ? Number(streak) : null,
    crowd: most === null ? null : { live, most, isLive: score !== null },
    keptMs: ttl < 0 ? null : ttl,
    underWay: { shares: processes, reporting },
    leftTotal: total?.remaining ?? null,
    leftBoth: both?.remaining ?? null,
    ...(query.request && { route: await routeOf(session, query.request) }),
  };
  return { key, facts: { ...facts, answer: enforcedAnswer(taken, facts) } };
}

/**
 * A take writes when it is admitted; a denial may too, under fair shares or where a bucket lies ahead of the clock.
 * What is left tells them apart: whole tokens, so a part of a token is taken for left.
 */
function keptFromWriting(
  { cost, priority }: DebugQuery,
  params: Params,
  capacity: number,
  { total, both }: { total: TakeAnswer | null; both: TakeAnswer | null },
): TakeAnswer {
  if (both !== null && !both.allowed) return both;
  const remaining = both?.remaining ?? 0;
  const after = Math.max(0, Math.floor(remaining - cost));
  const reason = both?.reason ?? 'ok';
  const admitted: TakeAnswer = { allowed: true, reason, remaining: after, retryAfterMs: 0 };
  if (both === null || reason === 'exempt') return admitted;
  const whole = Math.floor(cost);
  const inTotal = total?.remaining ?? Number.POSITIVE_INFINITY;
  const kept = reserveOf(params, priority) * capacity;
  const denied = { allowed: false, remaining, retryAfterMs: null };
  if (inTotal < whole) return { ...denied, reason: 'rate' };
  if (inTotal < whole + Math.floor(kept)) return { ...denied, reason: 'reserve' };
  if (remaining >= whole) return admitted;
  const { fair } = crowdTerms(params.subjectTerms);
  return { ...denied, reason: fair ? 'fair_share' : 'subject' };
}

function enforcedAnswer(taken: TakeAnswer, facts: Omit<DebugFacts, 'answer'>): DebugAnswer {
  // What is said of one subject holds also for whom the rollout has not reached.
  const blocked = taken.reason === 'blocked' && facts.shadow !== 'mode';
  const enforced = facts.shadow === null || blocked;
  const answer = { ...taken, enforced, passes: taken.allowed || !enforced };
  return { ...answer, sentence: answerSentence(answer, facts) };
}

const KIND = {
  'token-bucket': 'b',
  'sliding-log': 'wl',
  'sliding-counter': 'wc',
  'fixed-window': 'wf',
  'leaky-bucket': 'wp',
} as const satisfies Record<Algorithm, string>;

/** What the policy says; where it leaves the choice to the service, a token bucket. */
function termsOf({ algorithm, windowMs, cells }: Params): AlgorithmTerms {
  const known = ALGORITHMS.find((name) => name === algorithm) ?? 'token-bucket';
  return { algorithm: known, windowMs, cells };
}

/** The script's own answer; null: it would have written. */
async function asked(
  redis: RedisClient,
  keys: LimiterKeys,
  take: TakeRequest,
  of: { params: Params; terms: AlgorithmTerms; inShadow: boolean },
): Promise<TakeAnswer | null> {
  const { rate, capacity, inFlightMax, subjectRate, subjectCapacity, subjectRules } = of.params;
  const call: TakeCall = {
    keys,
    takes: [take],
    chargeByUs: 'any',
    fallback: { rate, capacity, inFlightMax, subjectRate, subjectCapacity },
    terms: of.terms,
    shadow: of.inShadow,
  };
  const raw = await askOnly(redis, subjectRules === 1 ? subjectTakeCall(call) : takeCall(call));
  return raw === null ? null : (readTakeReply(raw).answers[0] ?? null);
}

/** As the services do: all limiters' routes in one table, the most exact one has the request. */
async function routeOf(
  session: Session,
  { method, path }: { method: string; path: string },
): Promise<{ limiter: string; route: string } | null> {
  const limiters = await listLimiters(session);
  const read = await Promise.all(
    limiters.map(async (address) => {
      const params = parseParams(await session.redis.hgetall(limiterKeys(address).params));
      return [address.name, routesOf(params)] as const;
    }),
  );
  return compileRoutes(new Map(read)).table.find(method, path);
}
