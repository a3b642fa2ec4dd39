/** A change of a policy runs for a percent of the subjects first: how that begins, and how it ends. Stage: actuate. */
import { canaryPolicy, concernsTakes, noCanaryWhy } from '../policy/canary-policy.js';
import { policyHash, policyJson } from '../policy/hash.js';
import type { Policy } from '../policy/schema.js';
import type { ActuateReply } from '../redis/calls.js';
import { CANARY_PATIENCE, type Canary, canaryText, isTried, parseCanary } from '../redis/canary.js';
import { effective } from '../redis/effective.js';
import { type LimiterAddress, limiterKeys } from '../redis/keys.js';
import type { Params } from '../redis/params.js';
import { type RedisClient, readParamsAnyhow, write } from './actuator.js';
import { adopt, keepAdopted, type LoadedPolicy, policyAddress } from './adopt.js';
import type { AdoptOptions, AdoptOutcome } from './adopt-types.js';
import { isActive } from './adopted-params.js';
import { readAdopted } from './adopted-policy.js';
import { clearCanary, retireCanary } from './canary-end.js';
import { standing } from './verbs/plan.js';

/** How much of the subjects, and for how long. */
export interface CanaryWish {
  percent: number;
  forMs: number;
}

/** Its text is kept under its hash for whoever leads when it has passed. */
const SPARE_MS = 3_600_000;

/**
 * As `adopt`, but a change goes through a canary if the policy says so and it can. A version that is tried, or whose
 * canary has ended, is left as it is; one that is adopted already ends the canary of another.
 */
export async function adoptOrTry(
  redis: RedisClient,
  loaded: LoadedPolicy,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const { canary } = loaded.policy;
  const address = policyAddress(loaded.policy, options.prefix);
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  if (params === null) return adopt(redis, loaded, options);
  const known = parseCanary(params.canary);
  if (known?.policy === loaded.hash) return { status: 'unchanged' };
  if (params.policyHash === loaded.hash) {
    if (isTried(known, nowUs / 1000)) {
      const why = `${loaded.file} says the adopted policy again`;
      const reply = await endCanary(redis, address, params, nowUs, known, 'stopped', why, options);
      if (reply.status !== 'ok') return refusedBy(reply);
    }
    return adopt(redis, loaded, options);
  }
  if (canary === undefined) return adopt(redis, loaded, options);
  const wish = { percent: canary.percent, forMs: canary.for };
  const from = await readAdopted(redis, address, params.policyHash);
  if (from !== null && !concernsTakes(from.policy, loaded.policy)) {
    return adopt(redis, loaded, options);
  }
  const no = refusesCanary(from?.policy ?? null, loaded.policy, params, nowUs / 1000, wish);
  if (no === null) return beginCanary(redis, loaded, wish, options);
  return adopt(redis, loaded, { ...options, why: `without its canary, since ${no}.` });
}

/** For a person who asks for a canary: a change that cannot have one is refused, and a new limiter has nothing to compare. */
export async function tryFirst(
  redis: RedisClient,
  loaded: LoadedPolicy,
  wish: CanaryWish,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const address = policyAddress(loaded.policy, options.prefix);
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  if (params === null || params.policyHash === loaded.hash) return adopt(redis, loaded, options);
  const from = await readAdopted(redis, address, params.policyHash);
  const no =
    from !== null && !concernsTakes(from.policy, loaded.policy)
      ? 'it changes nothing that passes'
      : refusesCanary(from?.policy ?? null, loaded.policy, params, nowUs / 1000, wish);
  if (no === null) return beginCanary(redis, loaded, wish, options);
  const sentence = `it cannot run for a part first: ${no}. Without --canary it is adopted at once`;
  return { status: 'refused', reason: 'canary', sentence };
}

/** Why it would have to be adopted at once; null: it can be tried. */
function refusesCanary(
  from: Policy | null,
  to: Policy,
  params: Params,
  nowMs: number,
  { percent }: CanaryWish,
): string | null {
  const { state } = effective(params, nowMs);
  if (from === null) return 'the adopted policy cannot be read';
  if (state !== 'closed') return `the limiter is ${state}`;
  if (isActive(params.pinnedUntil, nowMs) || isActive(params.frozenUntil, nowMs)) {
    return 'a person holds the limiter';
  }
  return noCanaryWhy(from, to, percent);
}

/** Adopts it on the canary's limiter, then says so in the params: services follow within two seconds. */
async function beginCanary(
  redis: RedisClient,
  loaded: LoadedPolicy,
  wish: CanaryWish,
  options: AdoptOptions,
): Promise<AdoptOutcome> {
  const address = policyAddress(loaded.policy, options.prefix);
  const { params, nowUs } = await readParamsAnyhow(redis, address);
  if (params === null) return adopt(redis, loaded, options);
  const moved = options.moved?.(params, nowUs / 1000) ?? null;
  if (moved !== null) return { status: 'refused', reason: 'moved', sentence: moved };
  const part = canaryPolicy(loaded.policy, wish.percent);
  const json = policyJson(part);
  const hash = policyHash(part);
  const { authority: _, moved: _m, last: _l, ...asPerson } = options;
  await clearCanary(redis, address);
  const tried = await adopt(redis, { file: loaded.file, policy: part, hash, json }, asPerson);
  if (tried.status === 'refused') return tried;
  const { percent, forMs } = wish;
  const since = Math.floor(nowUs / 1000);
  const until = since + forMs * CANARY_PATIENCE;
  const limiter = part.limiter.name;
  const canary: Canary = { policy: loaded.hash, limiter, percent, since, forMs, until };
  const livesMs = Math.round(forMs * CANARY_PATIENCE + SPARE_MS);
  const key = limiterKeys(address).policyVersion(loaded.hash);
  // A version that was adopted before is kept already, and longer.
  await redis.set(key, loaded.json, 'PX', livesMs, 'NX');
  const sentence = `Policy ${loaded.hash.slice(0, 12)} of ${loaded.file} runs for ${percent} % of the subjects first, on ${limiter}, and is judged after ${spanWords(forMs)}; the whole may pass up to ${percent} % more meanwhile.`;
  const reply = await writeCanary(redis, address, params, nowUs, canary, options, {
    reason: 'canary_begins',
    sentence,
    detail: { canary, file: loaded.file },
  });
  if (reply.status !== 'ok') return refusedBy(reply);
  await keepAdopted(redis, loaded, options, reply);
  return { status: 'canary', epoch: reply.epoch, revision: reply.revision, sentence };
}

/** Takes it back: nothing of the limiter itself has changed. */
export async function endCanary(
  redis: RedisClient,
  address: LimiterAddress,
  params: Params,
  nowUs: number,
  canary: Canary,
  how: NonNullable<Canary['ended']>,
  why: string,
  options: AdoptOptions & { detail?: Record<string, unknown> },
): Promise<ActuateReply> {
  const reply = await writeCanary(
    redis,
    address,
    params,
    nowUs,
    { ...canary, ended: how },
    options,
    {
      reason: `canary_${how}`,
      sentence: endSentence(canary, how, why),
      detail: { canary, ...options.detail },
    },
  );
  if (reply.status === 'ok') await retireCanary(redis, address);
  return reply;
}

export function endSentence(
  canary: Canary,
  how: NonNullable<Canary['ended']>,
  why: string,
): string {
  const word = { failed: 'failed', unproven: 'has proved nothing', stopped: 'was ended' }[how];
  return `The canary of policy ${canary.policy.slice(0, 12)} ${word}: ${why}. It is not tried again before its file changes.`;
}

function writeCanary(
  redis: RedisClient,
  address: LimiterAddress,
  params: Params,
  nowUs: number,
  canary: Canary,
  options: AdoptOptions,
  entry: { reason: string; sentence: string; detail: Record<string, unknown> },
): Promise<ActuateReply> {
  const { authority = { kind: 'person' as const }, actor, why } = options;
  const { values, settled } = standing({ params, nowMs: nowUs / 1000 });
  return write(
    redis,
    address,
    {
      ...{ authority, actor, cause: 'policy', policyHash: params.policyHash },
      expected: { epoch: params.epoch, revision: params.revision },
      change: { ...settled, canary: canaryText(canary) },
      reason: entry.reason,
      sentence: why === undefined ? entry.sentence : `${entry.sentence} Reason: ${why}`,
      ...{ before: values, after: values },
      detail: { ...entry.detail, ...(why === undefined ? {} : { why }) },
    },
    options,
  );
}

function refusedBy(reply: Extract<ActuateReply, { status: 'refused' }>): AdoptOutcome {
  const sentence = `the canary was not written: ${reply.reason} (${reply.detail})`;
  return { status: 'refused', reason: 'write', sentence, reply };
}

function spanWords(ms: number): string {
  if (ms % 60_000 === 0) return `${ms / 60_000} min`;
  return `${ms / 1000} s`;
}
